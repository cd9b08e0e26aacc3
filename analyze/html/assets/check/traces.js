// Traces that no testdata has: many ranks, and names that mean harm.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** many writes 64 ranks with so many kernels each; every 40th is a collective. */
export function many(dir, ranks, kernels) {
  mkdirSync(dir, { recursive: true });
  const members = [...Array(ranks).keys()];
  for (const rank of members) {
    const events = [];
    let at = 1000;
    for (let step = 0; step < 4; step++) {
      const begin = at;
      for (let k = 0; k < kernels / 4; k++) {
        const id = events.length + 1;
        const collective = k % 40 === 39;
        const dur = collective ? 12 - rank / 10 : 2 + (k % 9);
        events.push({ ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: 1, tid: 1, ts: at - 1, dur: 1, args: { correlation: id } });
        const start = collective ? at + rank / 10 : at;
        if (collective) events.push({ ph: 'X', cat: 'cpu_op', name: 'record_param_comms', pid: 1, tid: 1, ts: at - 2, dur: 3, args: { 'Collective name': 'allreduce', dtype: 'Float', 'In msg nelems': 1048576, 'Out msg nelems': 1048576, 'Group size': ranks, 'Process Group Name': '0', 'Process Group Ranks': `[${members}]`, Seq: k + step * kernels } });
        events.push({ ph: 'X', cat: 'kernel', name: collective ? 'ncclDevKernel_AllReduce_Sum_f32_RING_LL' : `gemm_${k % 40}`, pid: 0, tid: collective ? 20 : 7, ts: start, dur, args: { correlation: id, stream: collective ? 20 : 7, device: 0 } });
        at += (collective ? 12 : dur) + 1;
      }
      events.push({ ph: 'X', cat: 'user_annotation', name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: begin, dur: at - begin });
    }
    writeFileSync(join(dir, `rank${rank}.json`), JSON.stringify({ distributedInfo: { rank, world_size: ranks, backend: 'nccl' }, traceEvents: events }));
  }
}

/** slower writes two runs of 2 ranks and so many steps, the second one slower by a third. */
export function slower(dir, steps) {
  for (const [run, stretch] of [['before', 1], ['after', 1.35]]) {
    mkdirSync(join(dir, run), { recursive: true });
    for (const rank of [0, 1]) {
      const events = [];
      let at = 1000;
      for (let step = 0; step < steps; step++) {
        const begin = at;
        for (const op of ['allreduce', 'all_to_all']) {
          const id = events.length + 1;
          const kernel = 300 + (step * 7) % 9;
          const comm = (op === 'allreduce' ? 120 : 40) * stretch + (step * 5) % 7;
          events.push({ ph: 'X', cat: 'kernel', name: 'gemm', pid: 0, tid: 7, ts: at, dur: kernel, args: { correlation: id, stream: 7, device: 0 } });
          events.push({ ph: 'X', cat: 'cpu_op', name: 'record_param_comms', pid: 1, tid: 1, ts: at - 2, dur: 3, args: { 'Collective name': op, dtype: 'Float', 'In msg nelems': 1048576, 'Out msg nelems': 1048576, 'Group size': 2, 'Process Group Name': '0', 'Process Group Description': 'default_pg', 'Process Group Ranks': '[0, 1]', Seq: events.length } });
          events.push({ ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: 1, tid: 1, ts: at - 1, dur: 1, args: { correlation: 10000 + id } });
          events.push({ ph: 'X', cat: 'kernel', name: `ncclDevKernel_${op === 'allreduce' ? 'AllReduce_Sum_f32_RING_LL' : 'SendRecv'}`, pid: 0, tid: 20, ts: at + kernel, dur: comm, args: { correlation: 10000 + id, stream: 20, device: 0 } });
          at += kernel + comm + 20;
        }
        events.push({ ph: 'X', cat: 'user_annotation', name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: begin - 5, dur: at - begin });
        at += 10;
      }
      writeFileSync(join(dir, run, `rank${rank}.json`), JSON.stringify({ distributedInfo: { rank, world_size: 2, backend: 'nccl' }, traceEvents: events }));
    }
  }
}

/** tables writes logs of nccl-tests for three settings; it returns each with its name. */
export function tables(dir) {
  const settings = [['nccl', 18, 24000], ['nccl:ring/ll/ch=8', 11, 9000], ['nccl:tree/simple', 14, 16000]];
  return settings.flatMap(([name, start, speed], k) => ['all_reduce', 'all_gather'].map((op, n) => {
    const lines = ['# nccl-tests version 2.19.6 nccl-headers=23004 nccl-library=23004', `# Collective test starting: ${op}_perf`,
      '#  Rank  0 Group  0 Pid   4242 on     node-a device  0 [0000:1b:00] NVIDIA H100', '#  Rank  1 Group  0 Pid   4243 on     node-a device  1 [0000:43:00] NVIDIA H100'];
    for (let bytes = 64; bytes <= 1 << 26; bytes *= 2) {
      const us = ((start + bytes / speed) * (1 - n / 5)).toFixed(2);
      const bw = (bytes / us / 1e3).toFixed(2);
      lines.push(`${bytes} ${bytes / 4} float sum -1 ${us} ${bw} ${bw} 0 ${us} ${bw} ${bw} 0`);
    }
    const file = join(dir, `table-${k}-${n}.log`);
    writeFileSync(file, `${lines.join('\n')}\n`);
    return [file, name];
  }));
}

export const hostileNames = [
  '</script><script>alert(1)</script>', '"><img src=x onerror=alert(1)>', '</style></title><svg/onload=alert(1)>',
  '\u001b[31mred\u001b]0;title\u0007', '\u202edetrever\u2066', '\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627', 'a\u2028b\u2029c', `${'very long <b>name</b> '.repeat(5000)}`,
];

/** hostile writes two ranks whose every name is one of those; kernels take longer us. */
export function hostile(dir, longer = 15) {
  mkdirSync(dir, { recursive: true });
  for (const rank of [0, 1]) {
    const events = hostileNames.flatMap((name, i) => [
      { ph: 'X', cat: 'kernel', name, pid: name, tid: name, ts: 100 + i * 20, dur: longer, args: { stream: 7, correlation: i + 1, device: 0 } },
      { ph: 'X', cat: 'user_annotation', name: `ProfilerStep#${i}${name}`, pid: 1, tid: 1, ts: 95 + i * 20, dur: 19 },
      { ph: 'X', cat: 'cpu_op', name: 'record_param_comms', pid: 1, tid: 1, ts: 101 + i * 20, dur: 2, args: { 'Collective name': name, dtype: name, 'In msg nelems': 8, 'Out msg nelems': 8, 'Group size': 2, 'Process Group Name': name, 'Process Group Ranks': '[0, 1]', Seq: i } },
      { ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: 1, tid: 1, ts: 102 + i * 20, dur: 1, args: { correlation: 100 + i } },
      { ph: 'X', cat: 'kernel', name: `ncclDevKernel_AllReduce${name}`, pid: 0, tid: 20, ts: 104 + i * 20, dur: 9, args: { stream: 20, correlation: 100 + i, device: 0 } },
    ]);
    writeFileSync(join(dir, `rank${rank}.json`), JSON.stringify({ distributedInfo: { rank, world_size: 2, backend: '<i>nccl</i>' }, traceEvents: events }));
  }
}
