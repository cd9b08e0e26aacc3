// Times as the tables of the page write them.

/** duration writes ns with three digits or so, like the Go side: "13.01 ms". */
export function duration(ns) {
  const size = Math.abs(ns);
  if (ns === 0) return '0';
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${trim(ns / 1e3)} us`;
  if (size < 1e9) return `${trim(ns / 1e6)} ms`;
  return `${trim(ns / 1e9)} s`;
}

/** bytes writes a size with binary units. */
export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit++; }
  return `${trim(n)} ${units[unit]}`;
}

/** trim is a number with three or four digits, without zeros at its end. */
function trim(x) {
  const digits = Math.abs(x) < 10 ? 3 : Math.abs(x) < 100 ? 2 : 1;
  return x.toFixed(digits).replace(/\.?0+$/, '');
}

/** tickStep is a round distance of marks of an axis, about n of them over span. */
export function tickStep(span, n) {
  const raw = span / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
}
