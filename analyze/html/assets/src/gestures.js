// Keys, pointers, wheel and buttons of the time line.
//
// The wheel alone scrolls the page, as everywhere; with Ctrl or Cmd it zooms. A
// finger moves up and down as in any page, and sideways in time.

import { hideTip, showTip } from './tip.js';

/** gestures listens on the view's canvas. */
export function gestures(view) {
  pointers(view);
  wheel(view);
  keys(view);
  document.querySelector('#timeline .tools').addEventListener('click', (e) => act(view, e.target.dataset.act));
}

function act(view, what) {
  const span = view.to - view.from;
  switch (what) {
    case 'in': view.zoom(0.5); break;
    case 'out': view.zoom(2); break;
    case 'left': view.setWindow(view.from - span / 4, view.to - span / 4); break;
    case 'right': view.setWindow(view.from + span / 4, view.to + span / 4); break;
    case 'fit': view.setWindow(0, view.end); break;
    default:
  }
}

function pointers(view) {
  const { canvas } = view;
  const down = new Map(); // pointer -> where it is now
  let moved = false;
  canvas.addEventListener('pointerdown', (e) => {
    down.set(e.pointerId, e.offsetX);
    moved = false;
    canvas.setPointerCapture(e.pointerId);
    hideTip();
  });
  canvas.addEventListener('pointermove', (e) => {
    if (!down.has(e.pointerId)) { hover(view, e); return; }
    const before = down.get(e.pointerId);
    if (down.size === 1) {
      if (Math.abs(e.offsetX - before) < 3 && !moved) return;
      const t = (before - e.offsetX) / (view.width - view.gutter) * (view.to - view.from);
      view.setWindow(view.from + t, view.to + t);
    } else {
      const other = [...down].find(([id]) => id !== e.pointerId)[1];
      const factor = Math.max(Math.abs(before - other), 10) / Math.max(Math.abs(e.offsetX - other), 10);
      view.zoom(factor, (e.offsetX + other) / 2);
    }
    moved = true;
    down.set(e.pointerId, e.offsetX);
  });
  const up = (e) => {
    if (down.delete(e.pointerId) && !moved && down.size === 0 && e.type === 'pointerup') view.pick(view.at(e.offsetX, e.offsetY));
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('dblclick', (e) => zoomTo(view, view.at(e.offsetX, e.offsetY)));
}

function hover(view, e) {
  const at = view.at(e.offsetX, e.offsetY);
  if (at) showTip(view.describe(at), e.clientX, e.clientY); else hideTip();
  if (at?.[0] !== view.hovered?.[0] || at?.[1] !== view.hovered?.[1]) {
    view.hovered = at;
    view.redraw();
  }
}

/** zoomTo shows a slice with half its length around it. */
function zoomTo(view, at) {
  if (!at) return;
  const lane = view.lanes[at[0]];
  const start = lane.start[at[1]];
  const dur = Math.max(lane.dur[at[1]], 100);
  view.setWindow(start - dur / 2, start + 1.5 * dur);
}

function wheel(view) {
  view.canvas.addEventListener('wheel', (e) => {
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      view.zoom(Math.exp(Math.min(Math.max(e.deltaY, -200), 200) / 200), e.offsetX);
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      const t = (e.deltaX || e.deltaY) / (view.width - view.gutter) * (view.to - view.from);
      view.setWindow(view.from + t, view.to + t);
    }
  }, { passive: false });
}

function keys(view) {
  view.canvas.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const span = view.to - view.from;
    const move = (part) => view.setWindow(view.from + span * part, view.to + span * part);
    const commands = {
      ArrowLeft: () => move(-0.1), ArrowRight: () => move(0.1), a: () => move(-0.1), d: () => move(0.1),
      ArrowUp: () => { view.box.scrollTop -= 3 * view.pitch; }, ArrowDown: () => { view.box.scrollTop += 3 * view.pitch; },
      '+': () => view.zoom(0.7), '=': () => view.zoom(0.7), w: () => view.zoom(0.7), '-': () => view.zoom(1.4), s: () => view.zoom(1.4),
      Home: () => view.setWindow(0, span), End: () => view.setWindow(view.end - span, view.end), 0: () => view.setWindow(0, view.end),
      n: () => step(view, 1), p: () => step(view, -1), Enter: () => zoomTo(view, view.picked), Escape: () => { view.pick(null); hideTip(); },
    };
    const command = commands[e.key];
    if (!command) return;
    e.preventDefault();
    command();
  });
}

/** step marks the next slice of the lane, or the first in view; past a lane's end the next lane's. */
function step(view, by) {
  let [l, i] = view.picked ?? [0, -1];
  i += by;
  while (l >= 0 && l < view.lanes.length && (i < 0 || i >= view.lanes[l].n)) {
    l += by;
    i = by > 0 ? 0 : (view.lanes[l]?.n ?? 0) - 1;
  }
  if (view.lanes[l]) view.pick([l, i], true);
}
