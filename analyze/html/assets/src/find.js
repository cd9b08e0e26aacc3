// Finding slices by name: what does not match is dimmed, Enter goes to the next.

/** finder listens on the field above the time line. */
export function finder(view) {
  const field = document.getElementById('find');
  const found = document.getElementById('found');
  let hits = [];
  let next = 0;
  field.addEventListener('input', () => {
    view.needle = field.value.trim().toLowerCase();
    hits = view.needle ? search(view) : [];
    next = 0;
    found.textContent = view.needle ? `${hits.length} found` : '';
    view.redraw();
  });
  field.addEventListener('keydown', (e) => {
    if (e.key === 'Escape') { field.value = ''; field.dispatchEvent(new Event('input')); }
    if (e.key !== 'Enter' || hits.length === 0) return;
    e.preventDefault();
    view.pick(hits[next % hits.length], true);
    next++;
    found.textContent = `${(next - 1) % hits.length + 1} of ${hits.length}`;
  });
}

/** search compares each name once, not each slice. */
function search(view) {
  const wanted = new Set();
  view.names.forEach((name, i) => { if (name.t.toLowerCase().includes(view.needle)) wanted.add(i); });
  const hits = [];
  view.lanes.forEach((lane, l) => {
    for (let i = 0; i < lane.n; i++) if (wanted.has(lane.of[i])) hits.push([l, i]);
  });
  return hits;
}
