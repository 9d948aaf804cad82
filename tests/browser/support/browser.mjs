// The real Chromium, and pages that fail a test when anything in them goes wrong unseen.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { PATIENCE } from './until.mjs';

// The packages are installed outside of the source tree.
const require = createRequire(join(process.env.BROWSER_NODE, 'node_modules', 'x'));
const { chromium } = require('playwright-core');

/** Where screenshots go. */
export const SHOTS = process.env.BROWSER_SHOTS;
/** The tallest picture that is worth looking at. */
const TALLEST = 4_000;

export async function launch() {
  await mkdir(SHOTS, { recursive: true });
  return chromium.launch({
    executablePath: process.env.BROWSER_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'],
    timeout: PATIENCE,
  });
}

/** A page whose errors are kept in `page.wrong`; `checked` fails when there are any. */
export async function open(browser, url, { width = 1600, height = 1000, scheme = 'light', ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  watch(page, new URL(url).origin);
  await page.goto(url);
  await linked(page);
  return page;
}

function watch(page, origin) {
  page.wrong = [];
  page.on('pageerror', (error) => page.wrong.push(`error: ${error}`));
  page.on('console', (message) => {
    // Refused requests, and such as a newer one replaced, are what tests look at themselves; what the policy forbids is not.
    const told = /^(Failed to load resource|htmx:(afterRequest|sendAbort|responseError|sendError)|Response Status Error Code)/;
    if (message.type() === 'error' && !told.test(message.text())) page.wrong.push(message.text());
  });
  page.on('request', (request) => {
    const asked = new URL(request.url());
    if (asked.origin !== origin && asked.protocol !== 'data:') page.wrong.push(`another host: ${asked}`);
  });
}

/** Waits until the page hears of changes. */
export async function linked(page) {
  await page.locator('#link[data-link=live]').waitFor();
}

/** Closes it, and says what went wrong in it. */
export async function close(page) {
  await page.context().close();
  assert.deepEqual(page.wrong, []);
}

/** Whether something sticks out of the screen to the side, and what. */
export async function sticking(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const out = [...document.body.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > width + 1);
    return out.slice(0, 5).map((one) => one.outerHTML.slice(0, 200));
  });
}

/** What axe-core finds that matters. */
export async function barriers(page) {
  await page.evaluate(axeSource());
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const matters = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return matters.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => ({ html, failureSummary })) }));
}

let axe;
function axeSource() {
  axe ??= require('axe-core').source;
  return axe;
}

/** A picture of the whole page. */
export async function shoot(page, name) {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const { width } = page.viewportSize();
  await page.screenshot({
    path: join(SHOTS, `${name}.png`),
    fullPage: true,
    clip: { x: 0, y: 0, width, height: Math.min(height, TALLEST) },
    animations: 'disabled',
  });
}
