// Screenshots for the eye: node check/shot.js OUT FILE...

import { basename } from 'node:path';
import { launch, open } from './browser.js';

const looks = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  print: { colorScheme: 'dark', viewport: { width: 794, height: 1100 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 1.5, isMobile: true, hasTouch: true },
};

const [out, ...files] = process.argv.slice(2);
const browser = await launch();
if (!browser) {
  console.log('shot: no Chromium: apt-get install -y chromium');
  process.exit(0);
}
for (const file of files) {
  const name = basename(file, '.html');
  for (const [look, options] of Object.entries(looks)) {
    const { page, faults, close } = await open(browser, file, options);
    if (look === 'print') await page.emulateMedia({ media: 'print' });
    await page.waitForTimeout(300);
    // Tiles of a size that can be looked at; a page of many ranks has many.
    const { width, height } = await page.evaluate(() => ({ width: innerWidth, height: document.documentElement.scrollHeight }));
    const tile = look === 'phone' ? 1600 : 1100;
    for (let y = 0, n = 0; y < height && n < 6; y += tile, n++) {
      await page.screenshot({ path: `${out}/${name}-${look}-${n}.png`, fullPage: true, clip: { x: 0, y, width, height: Math.min(tile, height - y) } });
    }
    faults.forEach((f) => console.log(`${name} ${look}: ${f}`));
    await close();
  }
}
await browser.close();
