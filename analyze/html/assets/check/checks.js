// What is looked at on each report. A check throws when it fails.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { open } from './browser.js';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const fail = (text) => { throw new Error(text); };

/** look opens a report and runs a check on it; any fault of the page is a failure. */
export async function look(browser, file, options, check) {
  const { page, faults, close } = await open(browser, file, options);
  try {
    await check(page);
    await page.waitForTimeout(50);
    if (faults.length > 0) fail(faults.slice(0, 3).join('; '));
  } finally {
    await close();
  }
}

const state = (page) => page.locator('#tl canvas').evaluate((c) => ({ from: +c.dataset.from, to: +c.dataset.to, ms: +c.dataset.ms, drawn: +c.dataset.drawn }));
const settle = (page) => page.waitForTimeout(60);

/** timeline hovers, zooms, drags, picks by key and finds by name. */
export async function timeline(page) {
  const canvas = page.locator('#tl canvas');
  if (await canvas.count() === 0) return;
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const tip = page.locator('#tip');
  let hit = null;
  for (let y = 24; y < box.height && !hit; y += 4) {
    for (let x = 0.15; x < 1 && !hit; x += 0.04) {
      await page.mouse.move(box.x + box.width * x, box.y + y);
      if (await tip.isVisible()) hit = [box.x + box.width * x, box.y + y];
    }
  }
  if (!hit) fail('no slice was found under the pointer');
  if (!/lasts/.test(await tip.textContent())) fail(`the tip says ${await tip.textContent()}`);
  await settle(page);
  const whole = await state(page);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  await settle(page);
  const near = await state(page);
  if (!(near.to - near.from < (whole.to - whole.from) * 0.9)) fail(`the wheel does not zoom: ${JSON.stringify([whole, near])}`);
  await page.mouse.down();
  await page.mouse.move(hit[0] - 60, hit[1], { steps: 4 });
  await page.mouse.up();
  await settle(page);
  const moved = await state(page);
  if (moved.from === near.from && near.to !== whole.to) fail('dragging does not move');
  await canvas.focus();
  await page.keyboard.press('n');
  await page.keyboard.press('n');
  await settle(page);
  const picked = await page.locator('#picked').textContent();
  if (!/lasts/.test(picked)) fail(`N marks nothing: ${picked}`);
  await page.keyboard.press('Enter');
  await page.keyboard.press('0');
  await settle(page);
  const back = await state(page);
  if (back.from !== 0 || back.to !== whole.to) fail('0 does not show all again');
  await page.locator('#find').fill('e');
  if (!/^\d+ found$/.test(await page.locator('#found').textContent())) fail('finding says nothing');
  await page.locator('#find').press('Enter');
  await page.locator('#find').press('Escape');
}

/** smooth zooms and moves a large time line, and returns the times of its frames in ms. */
export async function smooth(page, frames) {
  const canvas = page.locator('#tl canvas');
  await canvas.scrollIntoViewIfNeeded();
  await canvas.focus();
  const times = [];
  for (let i = 0; i < frames; i++) {
    await page.keyboard.press(i % 4 === 0 ? '+' : i % 4 === 1 ? 'ArrowRight' : i % 4 === 2 ? '-' : 'ArrowLeft');
    await settle(page);
    times.push((await state(page)).ms);
  }
  return times.sort((a, b) => a - b);
}

/** theme switches to the other and back; the canvas must follow. */
export async function theme(page) {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await paper();
  await page.locator('#theme').click();
  if (await paper() === before) fail('the button does not change the theme');
  await page.locator('#theme').click();
  if (await paper() !== before) fail('the button does not change the theme back');
}

/** narrow: nothing sticks out of a phone's page. */
export async function narrow(page) {
  const [content, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (content > width + 1) fail(`the page is ${content} px wide on a phone of ${width}`);
}

/** answers: the sentence, the numbers and all questions are on the first two screens. */
export async function answers(page) {
  const [bottom, screen] = await page.evaluate(() => [document.getElementById('questions').getBoundingClientRect().bottom + scrollY, innerHeight]);
  if (bottom > 2 * screen) fail(`the answers end at ${Math.round(bottom)} px, two screens at ${2 * screen}`);
}

/** charts: each one has a plot. */
export async function charts(page) {
  const [figures, plots] = await page.evaluate(() => [document.querySelectorAll('figure[data-chart]').length, document.querySelectorAll('figure[data-chart] .uplot canvas').length]);
  if (figures !== plots) fail(`${plots} of ${figures} charts are drawn`);
}

/** paper prints; a page that throws while printing shows it as a fault. */
export async function paper(page) {
  const pdf = await page.pdf({ format: 'A4' });
  if (pdf.length < 10_000) fail(`the PDF has ${pdf.length} bytes`);
}

/** only: nothing of a name became an element. */
export async function only(page) {
  const found = await page.evaluate(() => [...document.querySelectorAll('img, iframe, object, embed, form, link, a[href]:not([href^="#"]), b, i')].map((e) => e.outerHTML.slice(0, 80)));
  if (found.length > 0) fail(`names became elements: ${found.join(' ')}`);
  const text = await page.evaluate(() => document.body.textContent);
  if (!text.includes('<script>alert(1)</script>')) fail('a hostile name is not shown as text');
  if (/[\u001b\u202e\u2066]/.test(text)) fail('control characters are shown');
}

/** accessible runs axe; it needs the policy out of the way, to be put in. */
export async function accessible(browser, file, colorScheme) {
  const { page, close } = await open(browser, file, { colorScheme, bypassCSP: true });
  try {
    await page.addScriptTag({ content: axeSource });
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const bad = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
    if (bad.length > 0) fail(`${colorScheme}: ${bad.map((v) => `${v.id} x${v.nodes.length} (${v.nodes[0].html.slice(0, 120)})`).join('; ')}`);
    return violations.map((v) => `${v.id} (${v.impact})`);
  } finally {
    await close();
  }
}
