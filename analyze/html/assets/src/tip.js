// The note beside the pointer. Its text is set as text, never as HTML: names come
// from traces.

const box = document.getElementById('tip');

/** showTip shows lines, each [name, value] or a heading, at a place of the window. */
export function showTip(lines, x, y) {
  box.replaceChildren(...lines.map((line) => {
    const row = document.createElement('div');
    if (typeof line === 'string') {
      row.className = 'tip-head';
      row.textContent = line;
      return row;
    }
    const name = document.createElement('span');
    name.textContent = line[0];
    const value = document.createElement('bdi');
    value.textContent = line[1];
    row.append(name, ' ', value);
    return row;
  }));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = x + 14 + width > innerWidth ? x - width - 14 : x + 14;
  const top = y + 14 + height > innerHeight ? y - height - 14 : y + 14;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

/** hideTip hides it. */
export function hideTip() { box.hidden = true; }
