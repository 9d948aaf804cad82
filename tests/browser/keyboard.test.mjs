// Every action can be done without a mouse, and the focus is visible.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { close, launch, open } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

/** More stops than any of these pages has before what is looked for. */
const STOPS = 60;

let browser, daemon, notes;

before(async () => {
  browser = await launch();
  notes = await new Scenario('notes', [tool('add_note', 'Writes a note down'), tool('find_note', 'Finds a note')]).start();
  daemon = await Daemon.start([notes], { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await notes.stop();
});

const focused = (page) =>
  page.evaluate(() => {
    const one = document.activeElement;
    const outline = getComputedStyle(one);
    return { id: one.id, text: one.textContent.trim(), seen: outline.outlineStyle !== 'none' && Number.parseFloat(outline.outlineWidth) >= 2 };
  });

/** Goes on with the tab key until something is reached; every stop on the way is seen. */
async function tabTo(page, what, reached) {
  for (let stop = 0; stop < STOPS; stop += 1) {
    await page.keyboard.press('Tab');
    const now = await focused(page);
    assert.ok(now.seen, `the focus is seen on ${JSON.stringify(now)}`);
    if (reached(now)) return now;
  }
  throw new Error(`${what} is not reached with the tab key`);
}

test('from the front page to a tool that is switched off', async () => {
  const page = await open(browser, daemon.url);
  const first = await tabTo(page, 'the way past the navigation', () => true);
  assert.equal(first.text, 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal((await focused(page)).id, 'main');
  await tabTo(page, 'the refresh of notes', ({ id }) => id === 'refresh-notes');
  const before = notes.asked;
  await page.keyboard.press('Enter');
  await until('it was asked', () => notes.asked > before);
  await page.goto(daemon.url);
  await tabTo(page, 'the page of the tools', ({ text }) => text === 'Tools');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/dashboard/tools');
  await page.locator('#link[data-link=live]').waitFor();
  const key = await page.locator('tr[data-tool="notes/find_note"]').getAttribute('id');
  await tabTo(page, 'the switch', ({ id }) => id === `${key}-on`);
  await page.keyboard.press('Space');
  await until('it is off', async () => !(await daemon.listed()).includes('find_note'));
  await page.locator(`#${key}-enabled-reset`).waitFor();
  assert.equal((await focused(page)).id, `${key}-on`, 'the focus stays where one works');
  await until('it is on again', async () => {
    // A row that comes anew between the two halves of a key press swallows it; a person presses again.
    if (!(await page.locator(`#${key}-on`).isChecked())) await page.keyboard.press('Space');
    return (await daemon.listed()).includes('find_note');
  });
  for (const id of [`${key}-on`, `${key}-approval`]) {
    await page.locator(`#${key}-on`).waitFor();
    await page.locator(`#${id}`).focus();
    await page.keyboard.press('/');
    const search = await page.evaluate(() => document.activeElement.matches('[data-search]'));
    assert.ok(search, `the search field has the focus after ${id}`);
  }
  await close(page);
});

test('a question is answered with the keyboard, and the focus comes back', async () => {
  const page = await open(browser, daemon.url);
  page.on('dialog', (dialog) => dialog.accept());
  await page.locator('#block-notes').focus();
  await page.keyboard.press('Enter');
  await page.locator('#scenario-notes[data-state=blocked]').waitFor();
  await until('it is live', async () => {
    // As above, a row that comes anew may swallow a key press.
    const unblock = page.locator('#unblock-notes');
    if (await unblock.isVisible()) {
      await unblock.focus({ timeout: 1_000 });
      await page.keyboard.press('Enter');
    }
    return page.locator('#scenario-notes[data-state=live]').isVisible();
  });
  await close(page);
});
