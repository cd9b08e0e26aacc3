// Opening reports in Debian's Chromium, without a network.

import { chromium } from 'playwright-core';
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** launch starts Chromium; CHROMIUM names another binary. */
export async function launch() {
  const executablePath = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((p) => p && existsSync(p));
  if (!executablePath) return null;
  // The pages are our own and local; as root, Chromium has no sandbox.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
}

/**
 * open loads a file in a context of its own. What it returns collects every fault
 * of the page: messages of the console, exceptions, and any attempt to load
 * something.
 */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1366, height: 768 }, deviceScaleFactor: 1, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') faults.push(`console: ${m.text()}`); });
  page.on('pageerror', (e) => faults.push(`exception: ${e.message}`));
  page.on('dialog', async (d) => { faults.push(`dialog: ${d.message()}`); await d.dismiss(); });
  page.on('request', (r) => { if (!r.url().startsWith('file:') && !r.url().startsWith('data:')) faults.push(`request: ${r.url()}`); });
  await page.goto(pathToFileURL(file).href);
  return { page, faults, close: () => context.close() };
}
