// The time line: what is visible, and how keys, pointers and buttons change it.

import { COMM, firstAt, matches, unpack } from './lanes.js';
import { AXIS, draw } from './draw.js';
import { bytes, duration } from './format.js';
import { hideTip } from './tip.js';
import { gestures } from './gestures.js';
import { finder } from './find.js';

/** timeline starts the section; it returns what redraws it. */
export function timeline(data) {
  const box = document.getElementById('tl');
  if (!box || !data) return () => {};
  const room = box.firstElementChild;
  const canvas = room.firstElementChild;
  const lanes = unpack(data);
  const view = {
    ctx: canvas.getContext('2d', { alpha: false }), canvas, box, lanes, names: data.names, index: matches(lanes),
    from: 0, to: data.end, end: data.end, gutter: 120, pitch: pitchOf(lanes.length), scroll: 0,
    picked: null, hovered: null, needle: '', drawn: 0,
    x: (t) => view.gutter + (t - view.from) / (view.to - view.from) * (view.width - view.gutter),
    time: (x) => view.from + (x - view.gutter) / (view.width - view.gutter) * (view.to - view.from),
    y: (lane) => AXIS + lane * view.pitch - view.scroll,
    matchOf: (l, i) => matchOf(lanes[l], i),
    redraw: () => schedule(view),
    setWindow: (from, to) => setWindow(view, from, to),
    zoom: (factor, at) => zoom(view, factor, at),
    at: (x, y) => sliceAt(view, x, y),
    pick: (at, reveal) => pick(view, at, reveal),
    describe: (at) => describe(view, at),
  };
  box.hidden = false;
  for (const el of document.querySelectorAll('#timeline .tools, #timeline-help')) el.hidden = false;
  box.addEventListener('scroll', () => { view.scroll = box.scrollTop; view.redraw(); });
  new ResizeObserver(() => resize(view, room)).observe(box);
  resize(view, room);
  gestures(view);
  finder(view);
  canvas.addEventListener('pointerleave', () => { view.hovered = null; hideTip(); view.redraw(); });
  return () => draw(view);
}

/** pitchOf is the height of a lane: less where there are many. */
function pitchOf(lanes) {
  if (lanes <= 40) return 16;
  return lanes <= 120 ? 12 : 9;
}

function resize(view, room) {
  const total = AXIS + view.lanes.length * view.pitch + 2;
  const height = Math.min(total, Math.max(240, Math.round(innerHeight * 0.7)));
  view.box.style.height = `${height}px`;
  room.style.height = `${total}px`;
  view.width = view.box.clientWidth;
  view.height = height;
  view.gutter = view.width < 560 ? 36 : 120;
  view.ratio = devicePixelRatio || 1;
  view.canvas.width = Math.round(view.width * view.ratio);
  view.canvas.height = Math.round(height * view.ratio);
  view.canvas.style.height = `${height}px`;
  draw(view);
}

/** schedule draws once in the next frame, however often it is asked to. */
function schedule(view) {
  if (view.waiting) return;
  view.waiting = true;
  requestAnimationFrame(() => {
    view.waiting = false;
    const begun = performance.now();
    draw(view);
    tell(view, performance.now() - begun);
  });
}

/** tell writes what is shown into the document, for scripts and for the browser check. */
function tell(view, ms) {
  Object.assign(view.canvas.dataset, { from: Math.round(view.from), to: Math.round(view.to), drawn: view.drawn, ms: ms.toFixed(1) });
}

/** setWindow shows a stretch of time, within what there is. */
function setWindow(view, from, to) {
  const span = Math.min(Math.max(to - from, 100), view.end);
  view.from = Math.min(Math.max(from, 0), view.end - span);
  view.to = view.from + span;
  view.redraw();
}

/** zoom changes the span by a factor; what is at px stays where it is. */
function zoom(view, factor, px) {
  const t = view.time(px ?? (view.width + view.gutter) / 2);
  view.setWindow(t - (t - view.from) * factor, t + (view.to - t) * factor);
}

/** sliceAt is the [lane, slice] at a place of the canvas; narrow ones are caught within 3 px. */
function sliceAt(view, x, y) {
  const l = Math.floor((y - AXIS + view.scroll) / view.pitch);
  const lane = view.lanes[l];
  if (!lane || y < AXIS || x < view.gutter) return null;
  const t = view.time(x);
  const slack = view.time(x + 3) - t;
  let best = null;
  let nearest = slack;
  for (let i = firstAt(lane, t - slack); i < lane.n && lane.start[i] <= t + slack; i++) {
    const away = Math.max(lane.start[i] - t, t - lane.start[i] - lane.dur[i], 0);
    if (away <= nearest) { best = [l, i]; nearest = away; }
    if (away === 0) break;
  }
  return best;
}

/** pick marks a slice, shows what it is, and brings it into view if asked to. */
function pick(view, at, reveal) {
  view.picked = at;
  const out = document.getElementById('picked');
  out.textContent = at ? view.describe(at).map((line) => (typeof line === 'string' ? line : line.join(' '))).join(', ') : '';
  if (at && reveal) {
    const lane = view.lanes[at[0]];
    const start = lane.start[at[1]];
    const end = start + lane.dur[at[1]];
    const span = view.to - view.from;
    if (end < view.from || start > view.to) view.setWindow((start + end - span) / 2, (start + end + span) / 2);
    const y = view.y(at[0]);
    if (y < AXIS || y + view.pitch > view.height) view.box.scrollTop = Math.max(0, at[0] * view.pitch - view.height / 2);
  }
  view.redraw();
}

function matchOf(lane, i) {
  const c = lane.comm?.[i] ?? -1;
  return c >= 0 && lane.columns.m[c] >= 0 ? lane.columns.m[c] : null;
}

/** describe is a slice in words, for the tip and for those who can't see it. */
function describe(view, [l, i]) {
  const lane = view.lanes[l];
  const { t: name, k: kind } = view.names[lane.of[i]];
  const count = lane.counts.get(i);
  const lines = [count ? `${count} short events, the longest ${name}` : name,
    ['rank', `${lane.rank}${lane.name ? `, ${lane.name}` : ''}`],
    ['starts', duration(lane.start[i])], ['lasts', duration(lane.dur[i])]];
  const c = lane.comm?.[i] ?? -1;
  if (kind !== COMM || c < 0) return lines;
  const col = lane.columns;
  lines.push(['operation', view.names[col.o[c]].t], ['group', view.names[col.g[c]].t]);
  if (col.b[c] >= 0) lines.push(['size', bytes(col.b[c])]);
  if (col.w[c] >= 0) lines.push(['waiting', duration(col.w[c])], ['transfer', duration(col.t[c])]);
  if (col.x[c] >= 0) lines.push(['exposed', duration(col.x[c])]);
  const all = col.m[c] >= 0 ? view.index.get(col.m[c])?.length ?? 0 : 0;
  if (all > 1) lines.push(['matched on', `${all} ranks`]);
  return lines;
}

