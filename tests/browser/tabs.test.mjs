// Hidden pages close their event streams, so that many open pages leave connections for the visible
// one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { close, launch, linked, open } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

/** More than the six connections that a browser keeps to one host. */
const TABS = 8;

let browser, daemon, notes;

before(async () => {
  browser = await launch();
  notes = await new Scenario('notes', [tool('add_note', 'Writes a note down')]).start();
  daemon = await Daemon.start([notes], { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await notes.stop();
});

/** Makes a page hidden or seen, as when its tab goes to the back or comes to the front. A browser without windows sees all its pages. */
const show = (page, seen) =>
  page.evaluate((seen) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => !seen });
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => (seen ? 'visible' : 'hidden') });
    document.dispatchEvent(new Event('visibilitychange'));
  }, seen);

test('many open pages, one of them seen', async () => {
  const first = await open(browser, daemon.url);
  const pages = [first];
  while (pages.length < TABS) {
    await show(pages.at(-1), false);
    await pages.at(-1).locator('#link[data-link=paused]').waitFor();
    // In the same context: they share its connections.
    const page = await first.context().newPage();
    page.wrong = [];
    await page.goto(daemon.url);
    await linked(page);
    pages.push(page);
  }
  // The one in front still acts.
  pages.at(-1).on('dialog', (dialog) => dialog.accept());
  await pages.at(-1).locator('#block-notes').click();
  await pages.at(-1).locator('#scenario-notes[data-state=blocked]').waitFor();
  // One that comes to the front is told what it missed.
  assert.equal(await first.locator('#scenario-notes').getAttribute('data-state'), 'live');
  await show(pages.at(-1), false);
  await show(first, true);
  await linked(first);
  await first.locator('#scenario-notes[data-state=blocked]').waitFor();
  // And follows again.
  await daemon.send('DELETE', '/api/v1/scenarios/notes/block');
  await first.locator('#scenario-notes[data-state=live]').waitFor();
  await close(first);
});

test('a page that is opened in the background waits until it is seen', async () => {
  const page = await open(browser, daemon.url);
  await show(page, false);
  await page.locator('#link[data-link=paused]').waitFor();
  let streams = 0;
  page.on('request', (request) => (streams += request.url().includes('/dashboard/live') ? 1 : 0));
  await show(page, true);
  await until('it follows', () => streams === 1);
  await show(page, true);
  await linked(page);
  assert.equal(streams, 1, 'once is enough');
  await close(page);
});
