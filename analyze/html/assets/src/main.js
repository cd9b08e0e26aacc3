// The script of mixdown's report. The page is complete without it, but for the
// time line and the charts over steps, which it draws from the data block.

import { theme } from './theme.js';
import { timeline } from './timeline.js';
import { charts } from './charts.js';

const data = JSON.parse(document.getElementById('data').textContent);
let redraw = () => {};
theme(() => redraw());
const redrawTimeline = timeline(data.timeline);
const redrawCharts = charts(data.charts);
redraw = () => { redrawTimeline(); redrawCharts(); };

// Paper shows what is folded on the screen, and is light: canvases are drawn anew
// for it, for they can't ask a style sheet.
const root = document.documentElement;
let chosen;
addEventListener('beforeprint', () => {
  chosen = root.dataset.theme;
  root.dataset.theme = 'light';
  document.querySelectorAll('details').forEach((d) => { d.open = true; });
  redraw();
});
addEventListener('afterprint', () => {
  if (chosen) root.dataset.theme = chosen; else delete root.dataset.theme;
  redraw();
});
