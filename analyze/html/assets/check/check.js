// Loads reports in Chromium as readers will: see checks.js for what is looked at.
//
//   node check/check.js MIXDOWN TESTDATA WORK [REPORT...]
//
// writes reports and screenshots to WORK. All reports are opened, hovered, zoomed
// and scanned; those that differ in kind also on a phone, on paper, in dark and
// without JavaScript. Pages that have a reference are compared with it; with UPDATE=1
// they become the reference.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { launch } from './browser.js';
import { hostile, many, slower, tables } from './traces.js';
import * as checks from './checks.js';
import { compare } from './picture.js';

const [mixdown, testdata, work, ...wanted] = process.argv.slice(2);
// Sets that stand for the others of their kind.
const thorough = new Set(['dp_moe_4rank', 'pipeline_1f1b_4rank', 'world_36rank', 'dlrm_8rank']);
// Those that have a reference of how they look.
const compared = new Set(['dp_moe_4rank', 'diff_steps', 'tune_table']);
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
mkdirSync(work, { recursive: true });
const run = (args) => execFileSync(mixdown, ['--quiet', ...args], { maxBuffer: 1 << 28 });

/** reports makes all reports: [name, file, what kind]. */
function reports() {
  const list = [];
  const add = (name, kind, args) => {
    if (wanted.length > 0 && !wanted.includes(name)) return;
    const file = join(work, `${name}.html`);
    if (args[0] === 'compare') {
      rmSync(file, { force: true });
      spawnSync(mixdown, ['--quiet', ...args.slice(1), file]);
      if (!existsSync(file)) throw new Error(`${name} made no page`);
    } else {
      run([...args, file]);
    }
    list.push({ name, file, kind });
  };
  for (const set of readdirSync(testdata)) {
    if (existsSync(join(testdata, set, 'rank0.pt.trace.json.gz'))) add(set, 'set', ['analyze', join(testdata, set), '--html']);
  }
  const dlrm = join(process.env.MIXDOWN_CORPUS ?? '', 'param/dlrm_8rank/kineto');
  if (process.env.MIXDOWN_CORPUS && existsSync(dlrm)) add('dlrm_8rank', 'set', ['analyze', dlrm, '--html']);
  if (wanted.length === 0 || wanted.includes('many_64rank')) many(join(work, 'many'), 64, 3200);
  add('many_64rank', 'many', ['analyze', join(work, 'many'), '--no-critical', '--html']);
  hostile(join(work, 'hostile'));
  add('hostile', 'hostile', ['analyze', join(work, 'hostile'), '--html']);
  // Comparisons: what changed much, what is the same, and names that mean harm.
  // Their exit code says what was found, which is not what is looked at here.
  const comparing = (name, kind, args) => add(name, kind, ['compare', ...args]);
  const moe = join(testdata, 'dp_moe_4rank');
  slower(join(work, 'slower'), 14);
  comparing('diff_fsdp', 'comparison', ['diff', join(testdata, 'fsdp1_4rank'), join(testdata, 'fsdp2_4rank'), '--html']);
  comparing('diff_steps', 'comparison', ['diff', join(work, 'slower', 'before'), join(work, 'slower', 'after'), '--html']);
  comparing('gate_steps', 'comparison', ['gate', '--baseline', join(work, 'slower', 'before'), '--candidate', join(work, 'slower', 'after'), '--rule', 'step +5%', '--rule', 'exposed_comm[op=*] +5%', '--rule', 'idle +10%', '--html']);
  comparing('gate_same', 'comparison', ['gate', '--baseline', moe, '--candidate', moe, '--rule', 'step +5%', '--rule', 'step <= 1ns', '--html']);
  hostile(join(work, 'hostile2'), 25);
  comparing('diff_hostile', 'hostile', ['diff', join(work, 'hostile'), join(work, 'hostile2'), '--html']);
  comparing('gate_hostile', 'hostile', ['gate', '--baseline', join(work, 'hostile'), '--candidate', join(work, 'hostile2'), '--rule', 'exposed_comm[group=*,op=*] +5%', '--rule', 'step +5%', '--html']);
  if (existsSync(join(work, 'table.tune'))) rmSync(join(work, 'table.tune'));
  for (const [log, backend] of tables(work)) run(['import', '--as', 'nccl-tests', log, '-o', join(work, 'table.tune'), '--backend', backend]);
  add('tune_table', 'comparison', ['tune', 'show', join(work, 'table.tune'), '--html']);
  const pipeline = join(testdata, 'pipeline_1f1b_4rank');
  if (wanted.length > 0 && !wanted.some((name) => name.startsWith('result_'))) return list;
  execFileSync('sh', ['-c', '"$0" --quiet simulate "$1" --search --format json --svg "$2.svg" >"$2.json"', mixdown, pipeline, join(work, 'orders')]);
  add('result_simulate', 'result', ['report', join(work, 'orders.json'), join(work, 'orders.svg'), '-o']);
  add('result_replay', 'result', ['report', join(import.meta.dirname, 'replay.json'), '-o']);
  return list;
}

/** checkReport runs all checks that fit a report; it returns a line about it. */
async function checkReport(browser, { name, file, kind }) {
  const notes = [`${(statSync(file).size / 1e6).toFixed(2)} MB`];
  if (statSync(file).size > 8 << 20) throw new Error('the page is larger than 8 MB');
  await checks.look(browser, file, {}, async (page) => {
    await page.screenshot({ path: join(work, `${name}-light.png`) });
    if (kind !== 'hostile') await checks.answers(page); // there, names fill pages
    await checks.charts(page);
    await checks.theme(page);
    await checks.timeline(page);
    if (kind === 'hostile') await checks.only(page);
    if (kind === 'many') {
      const times = await checks.smooth(page, 40);
      notes.push(`frames: median ${times[20]} ms, slowest ${times[39]} ms`);
      if (times[20] > 50) throw new Error(`a frame takes ${times[20]} ms`);
    }
  });
  if (compared.has(name)) notes.push(await compare(browser, file, join(import.meta.dirname, 'reference'), work, process.env.UPDATE === '1'));
  const minor = new Set(await checks.accessible(browser, file, 'light'));
  if (minor.size > 0) notes.push(`axe, not serious: ${[...minor].join(', ')}`);
  if (kind === 'set' && !thorough.has(name)) return notes.join(', ');
  await checks.look(browser, file, { ...phone, colorScheme: 'dark' }, async (page) => {
    await checks.narrow(page);
    await page.screenshot({ path: join(work, `${name}-phone.png`) });
  });
  await checks.look(browser, file, { colorScheme: 'dark' }, checks.paper);
  await checks.look(browser, file, { javaScriptEnabled: false }, async (page) => {
    if (!await page.locator('.lead').isVisible()) throw new Error('without JavaScript there is no answer');
  });
  await checks.accessible(browser, file, 'dark');
  return notes.join(', ');
}

const browser = await launch();
if (!browser) {
  console.log('check_html: skipped: no Chromium here (apt-get install -y chromium)');
  process.exit(0);
}
let failed = 0;
for (const report of reports()) {
  try {
    console.log(`ok   ${report.name}: ${await checkReport(browser, report)}`);
  } catch (e) {
    failed++;
    console.log(`FAIL ${report.name}: ${e.message}`);
  }
}
const version = browser.version();
await browser.close();
console.log(`check_html: ${failed === 0 ? 'all reports passed' : `${failed} reports failed`} in ${`Chromium ${version}`}; screenshots in ${work}`);
process.exit(failed === 0 ? 0 : 1);
