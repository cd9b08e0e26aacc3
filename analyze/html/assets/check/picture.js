// Pages compared with how they looked before: the first two screens, without their
// text, so that only boxes, bars and colours count.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { open } from './browser.js';

// How many of the pixels may differ, and by how much a pixel may without counting.
const tolerance = 0.005;
const near = 24;

const screen = { viewport: { width: 1280, height: 1600 }, deviceScaleFactor: 0.5, colorScheme: 'light', bypassCSP: true };
const plain = '* { color: transparent !important; font-family: "DejaVu Sans" !important; caret-color: transparent !important; } canvas { visibility: hidden; } pre, code { font-family: "DejaVu Sans Mono" !important; }';

/** shot is the picture of a page, and the width of a probe in its font. */
async function shot(browser, file) {
  const { page, close } = await open(browser, file, screen);
  try {
    await page.addStyleTag({ content: plain });
    const font = await page.evaluate(() => {
      const probe = document.createElement('span');
      probe.textContent = 'The quick brown fox jumps over 1234567890 lazy dogs';
      probe.style.cssText = 'position:absolute;white-space:nowrap;font:100px "DejaVu Sans"';
      document.body.append(probe);
      const { width } = probe.getBoundingClientRect();
      probe.remove();
      return Math.round(width);
    });
    return { font, png: await page.screenshot({ clip: { x: 0, y: 0, width: 1280, height: 1600 } }) };
  } finally {
    await close();
  }
}

/** differing is the share of pixels in which two PNGs differ. */
async function differing(browser, a, b) {
  const page = await browser.newPage();
  try {
    return await page.evaluate(async ([x, y, least]) => {
      const [one, two] = await Promise.all([x, y].map(async (data) => {
        const picture = new Image();
        picture.src = `data:image/png;base64,${data}`;
        await picture.decode();
        const canvas = Object.assign(document.createElement('canvas'), { width: picture.width, height: picture.height });
        const ctx = canvas.getContext('2d');
        ctx.drawImage(picture, 0, 0);
        return ctx.getImageData(0, 0, picture.width, picture.height);
      }));
      if (one.width !== two.width || one.height !== two.height) return 1;
      let n = 0;
      for (let i = 0; i < one.data.length; i += 4) {
        if ([0, 1, 2].some((k) => Math.abs(one.data[i + k] - two.data[i + k]) > least)) n++;
      }
      return n / (one.data.length / 4);
    }, [a.toString('base64'), b.toString('base64'), near]);
  } finally {
    await page.close();
  }
}

/**
 * compare holds a page against its reference, and returns a note. With update it
 * becomes the reference. Where the fonts are others, lines break elsewhere: then it
 * says so and compares nothing.
 */
export async function compare(browser, file, references, work, update) {
  const name = basename(file, '.html');
  const reference = join(references, `${name}.png`);
  const fonts = join(references, 'font.json');
  const now = await shot(browser, file);
  if (update) {
    writeFileSync(reference, now.png);
    writeFileSync(fonts, `${JSON.stringify({ probe: now.font })}\n`);
    return `reference of ${now.png.length} bytes`;
  }
  if (!existsSync(reference)) return '';
  if (JSON.parse(readFileSync(fonts, 'utf8')).probe !== now.font) return 'not compared with its reference: other fonts here';
  const share = await differing(browser, now.png, readFileSync(reference));
  writeFileSync(join(work, `${name}-plain.png`), now.png);
  if (share > tolerance) throw new Error(`${(100 * share).toFixed(1)} % of its pixels differ from ${reference} (now: ${work}/${name}-plain.png; "check_html.sh --update" takes it over)`);
  return `${(100 * share).toFixed(2)} % of its pixels differ from the reference`;
}
