// Line charts over steps or iterations, with uPlot: drag to zoom, double click to
// see all again, the values under the pointer in the legend.

import uPlot from 'uplot';
import { colour } from './theme.js';
import { duration } from './format.js';

const HEIGHT = 220;

/** charts draws all charts of the page; it returns what draws them anew. */
export function charts(all) {
  const drawn = [];
  for (const figure of document.querySelectorAll('figure[data-chart]')) {
    const data = all[figure.dataset.chart];
    if (data) drawn.push(chart(figure.querySelector('.plot'), data));
  }
  return () => drawn.forEach((redraw) => redraw());
}

function chart(box, data) {
  let plot = null;
  const redraw = () => {
    plot?.destroy();
    plot = new uPlot(options(box, data), columns(data), box);
  };
  redraw();
  // Only a change of width counts: the plot itself changes the height.
  let width = box.clientWidth;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    plot.setSize({ width, height: HEIGHT });
  }).observe(box);
  return redraw;
}

function columns(data) {
  const n = Math.max(...data.series.map((s) => s.values.length));
  return [[...Array(n).keys()], ...data.series.map((s) => s.values)];
}

function options(box, data) {
  const axis = { stroke: colour('muted'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line') }, font: '11px system-ui, sans-serif' };
  const name = (x) => data.xnames?.[x] ?? String(x + (data.xnames ? 0 : 1));
  return {
    width: box.clientWidth, height: HEIGHT,
    scales: { x: { time: false }, y: { range: (u, min, max) => [0, max > 0 ? max * 1.05 : 1] } },
    cursor: { drag: { x: true, y: false }, points: { size: 7 } },
    axes: [
      { ...axis, label: data.xlabel, size: 26, gap: 2, labelGap: 0, labelSize: 16, labelFont: '11px system-ui, sans-serif', incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (u, at) => at.map((x) => (Number.isInteger(x) ? short(name(x)) : '')) },
      { ...axis, size: 70, values: (u, at) => at.map(duration) },
    ],
    series: [
      { label: data.xlabel, value: (u, x) => (x == null ? '–' : name(x)) },
      ...data.series.map((s, i) => ({
        label: s.name, stroke: colour(`series-${i % 8}`), width: 2, dash: i % 2 ? [6, 3] : undefined, spanGaps: false,
        points: { show: s.values.length <= 60, size: 6 }, value: (u, v) => (v == null ? '–' : duration(v)),
      })),
    ],
  };
}

/** short leaves of a step's name what tells it from the others: ProfilerStep#10 is #10. */
function short(name) {
  const hash = name.lastIndexOf('#');
  const s = hash > 0 ? name.slice(hash) : name;
  return s.length > 12 ? `${s.slice(0, 11)}…` : s;
}
