// Drawing the time line. A frame looks at each visible slice once and draws what
// is narrower than a pixel together, so that its cost is bounded by the pixels.

import { COMM, firstAt, kinds } from './lanes.js';
import { colour } from './theme.js';
import { duration, tickStep } from './format.js';

export const AXIS = 22; // px, of the axis above the lanes
const font = (size) => `${size}px system-ui, sans-serif`;

/** palette reads the colours once a frame. */
function palette() {
  const names = [...kinds, 'wait', 'transfer', 'ink', 'muted', 'line', 'paper', 'band', 'mark'];
  return Object.fromEntries(names.map((n) => [n, colour(n)]));
}

/** draw paints a view: see timeline.js for its fields. */
export function draw(view) {
  const { ctx, width, height } = view;
  const c = palette();
  ctx.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  ctx.fillStyle = c.paper;
  ctx.fillRect(0, 0, width, height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, AXIS, width, height - AXIS);
  ctx.clip();
  view.drawn = 0;
  view.lanes.forEach((lane, i) => {
    const y = view.y(i);
    if (y > height || y + view.pitch < AXIS) return;
    if (lane.first) {
      ctx.fillStyle = c.line;
      ctx.fillRect(0, Math.round(y) - 1, width, 1);
    }
    drawLane(view, lane, y, c);
  });
  drawLinks(view, c);
  drawLabels(view, c);
  ctx.restore();
  drawAxis(view, c);
}

function drawLane(view, lane, y, c) {
  const { ctx, from, to, gutter, width } = view;
  const h = view.pitch - 1;
  const scale = (width - gutter) / (to - from);
  let lastX = -1; // the pixel drawn last, and what was there
  let lastKind = -1;
  for (let i = firstAt(lane, from); i < lane.n && lane.start[i] < to; i++) {
    const x0 = gutter + (lane.start[i] - from) * scale;
    const x1 = gutter + (lane.start[i] + lane.dur[i] - from) * scale;
    const left = Math.max(x0, gutter);
    const w = Math.min(x1, width) - left;
    const { t: name, k: kind } = view.names[lane.of[i]];
    if (w < 1) {
      const pixel = Math.floor(left);
      if (pixel === lastX && kind === lastKind) continue;
      lastX = pixel;
      lastKind = kind;
    }
    view.drawn++;
    const dim = view.needle && !name.toLowerCase().includes(view.needle);
    ctx.globalAlpha = dim ? 0.18 : lane.counts.has(i) ? 0.6 : 1;
    fill(view, lane, i, kind, left, w, x0, scale, y, h, c);
    ctx.globalAlpha = 1;
    if (w > 34 && h >= 10) label(ctx, name, left, w, y, h, kind, c);
  }
}

/** fill paints one slice; communication in two parts, waiting and transfer. */
function fill(view, lane, i, kind, left, w, x0, scale, y, h, c) {
  const { ctx } = view;
  ctx.fillStyle = c[kinds[kind]];
  const column = kind === COMM ? lane.comm?.[i] ?? -1 : -1;
  const wide = Math.max(w > 3 ? w - 0.5 : w, 1);
  if (column < 0 || lane.columns.w[column] < 0) {
    ctx.fillRect(left, y, wide, h);
    return;
  }
  const split = Math.min(Math.max(x0 + lane.columns.w[column] * scale, left), left + wide);
  ctx.fillStyle = c.wait;
  ctx.fillRect(left, y, split - left, h);
  ctx.fillStyle = c.transfer;
  ctx.fillRect(split, y, Math.max(left + wide - split, split - left < 1 ? 1 : 0), h);
}

function label(ctx, name, x, w, y, h, kind, c) {
  ctx.font = font(Math.min(11, h - 1));
  ctx.fillStyle = kind === 0 ? c.ink : c.mark;
  ctx.textBaseline = 'middle';
  const room = Math.floor((w - 6) / 6);
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.fillText(name.length > room ? `${name.slice(0, Math.max(room - 1, 1))}…` : name, x + 3, y + h / 2 + 0.5);
  ctx.restore();
}

/** drawLinks joins what is matched with the marked slice on other ranks. */
function drawLinks(view, c) {
  const at = view.picked ?? view.hovered;
  if (!at) return;
  const { ctx } = view;
  const [l, i] = at;
  outline(view, l, i, c);
  const number = view.matchOf(l, i);
  const all = number === null ? [] : view.index.get(number) ?? [];
  if (all.length < 2) return;
  ctx.strokeStyle = c.ink;
  ctx.lineWidth = 1.2;
  ctx.beginPath();
  // Members top to bottom, joined where each begins: a late one sticks out to the right.
  [...all].sort((a, b) => a[0] - b[0]).forEach(([lane, slice], n) => {
    const x = view.x(view.lanes[lane].start[slice]);
    const y = view.y(lane) + view.pitch / 2;
    if (n === 0) ctx.moveTo(x, y); else ctx.lineTo(x, y);
  });
  ctx.stroke();
  for (const [lane, slice] of all) outline(view, lane, slice, c);
}

function outline(view, l, i, c) {
  const lane = view.lanes[l];
  const x0 = view.x(lane.start[i]);
  const x1 = view.x(lane.start[i] + lane.dur[i]);
  view.ctx.strokeStyle = c.ink;
  view.ctx.lineWidth = 2;
  view.ctx.strokeRect(x0, view.y(l), Math.max(x1 - x0, 2), view.pitch - 1);
}

/** drawLabels writes ranks and lanes into the gutter, over what is below it. */
function drawLabels(view, c) {
  const { ctx, gutter, height } = view;
  ctx.fillStyle = c.paper;
  ctx.fillRect(0, AXIS, gutter, height);
  ctx.fillStyle = c.line;
  ctx.fillRect(gutter - 1, AXIS, 1, height);
  ctx.textBaseline = 'middle';
  view.lanes.forEach((lane, i) => {
    const y = view.y(i);
    if (y > height || y + view.pitch < AXIS) return;
    if (lane.first) {
      ctx.font = `600 ${font(view.pitch < 12 ? 10 : 11)}`;
      ctx.fillStyle = c.ink;
      ctx.fillText(`${gutter < 90 ? '' : 'rank '}${lane.rank}`, 4, y + view.pitch / 2);
    }
    if (lane.name && gutter >= 90 && view.pitch >= 12 && !(lane.first && lane.name === 'steps')) {
      ctx.font = font(9);
      ctx.fillStyle = c.muted;
      const text = lane.name.length > 17 ? `${lane.name.slice(0, 16)}…` : lane.name;
      ctx.fillText(text, lane.first ? 52 : 12, y + view.pitch / 2);
    }
  });
}

function drawAxis(view, c) {
  const { ctx, from, to, gutter, width } = view;
  ctx.fillStyle = c.band;
  ctx.fillRect(0, 0, width, AXIS);
  ctx.font = font(10);
  ctx.textBaseline = 'middle';
  ctx.fillStyle = c.muted;
  const step = tickStep(to - from, Math.max((width - gutter) / 110, 2));
  for (let t = Math.ceil(from / step) * step; t < to; t += step) {
    const x = view.x(t);
    ctx.fillRect(x, AXIS - 5, 1, 5);
    if (x + 50 < width) ctx.fillText(duration(Math.round(t)), x + 3, AXIS / 2);
  }
}
