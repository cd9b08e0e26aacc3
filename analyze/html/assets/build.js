// Bundles src/ and uPlot into dist/, which is committed and embedded in mixdown.
// Run it by scripts/build_html.sh, which installs what it needs first.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';

const licence = (await readFile('node_modules/uplot/LICENSE', 'utf8')).trim();
const { version } = JSON.parse(await readFile('node_modules/uplot/package.json', 'utf8'));
// The licence travels with every report, in the script and beside it.
const banner = `/* This report contains uPlot ${version}, https://github.com/leeoniya/uPlot\n\n${licence}\n*/`;
const common = { bundle: true, minify: true, target: 'es2022', legalComments: 'none', logLevel: 'warning', charset: 'ascii' };

await build({ ...common, entryPoints: ['src/main.js'], outfile: 'dist/report.js', format: 'iife', banner: { js: banner } });
await build({ ...common, entryPoints: ['src/report.css'], outfile: 'dist/report.css' });
// What it was made of, so that a Go test sees a bundle that is older than its sources.
const hash = createHash('sha256');
for (const name of (await readdir('src')).sort()) hash.update(name + '\n').update(await readFile(`src/${name}`));
hash.update(await readFile('build.js')).update(await readFile('package-lock.json'));
await writeFile('dist/sources.sha256', `${hash.digest('hex')}\n`);
await writeFile('dist/LICENSES.txt', `report.js and report.css contain uPlot ${version}:\n\n${licence}\n`);
