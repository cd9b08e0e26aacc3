// The time line's data, unpacked for drawing: columns of numbers for each lane,
// so that 200,000 slices are a few typed arrays and no objects.

export const kinds = ['step', 'compute', 'memory', 'cpu', 'comm'];
export const COMM = 4;

/**
 * unpack turns the JSON into lanes in the order they are drawn. Starts are ns
 * since the first; of communication, the index of its columns is in comm[slice].
 */
export function unpack(data) {
  const lanes = [];
  for (const rank of data.ranks) {
    rank.lanes.forEach((packed, i) => {
      const n = packed.s.length;
      const lane = {
        rank: rank.rank, name: packed.name, first: i === 0, last: i === rank.lanes.length - 1, n,
        start: new Float64Array(n), dur: new Float64Array(n), of: new Uint32Array(n),
        comm: null, columns: packed.c ?? null, counts: new Map(),
      };
      let at = 0;
      for (let k = 0; k < n; k++) {
        at += packed.s[k];
        lane.start[k] = at;
        lane.dur[k] = packed.d[k];
        lane.of[k] = packed.n[k];
      }
      if (packed.c) {
        lane.comm = new Int32Array(n).fill(-1);
        packed.c.i.forEach((slice, c) => { lane.comm[slice] = c; });
      }
      for (let k = 0; packed.q && k < packed.q.length; k += 2) lane.counts.set(packed.q[k], packed.q[k + 1]);
      lanes.push(lane);
    });
  }
  return lanes;
}

/** firstAt is the first slice of a lane that ends after a time. */
export function firstAt(lane, time) {
  let low = 0;
  let high = lane.n;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (lane.start[mid] + lane.dur[mid] > time) high = mid; else low = mid + 1;
  }
  return low;
}

/** matches finds what is matched with each other: number -> [lane, slice] pairs. */
export function matches(lanes) {
  const index = new Map();
  lanes.forEach((lane, l) => lane.columns?.i.forEach((slice, c) => {
    const number = lane.columns.m[c];
    if (number < 0) return;
    if (!index.has(number)) index.set(number, []);
    index.get(number).push([l, slice]);
  }));
  return index;
}
