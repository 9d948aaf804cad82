// A newcomer's first page: a form adds a scenario at an address, the verdict follows, addresses are copied, and a button takes the
// scenario out again.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { close, launch, open } from './support/browser.mjs';
import { Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

let browser, daemon, notes;
const file = () => readFile(join(daemon.home, 'callsheet.toml'), 'utf8');

before(async () => {
  browser = await launch();
  notes = await new Scenario('notes', [tool('add_note', 'Writes a note down')]).start();
  daemon = await Daemon.start([]);
});

after(async () => {
  await browser.close();
  await Promise.all([daemon.stop(), notes.stop()]);
});

test('a scenario is added by the form, and taken out after a question', async () => {
  const page = await open(browser, daemon.url);
  const verdict = page.locator('.verdict');
  assert.equal(await verdict.textContent(), 'No tools yet: no scenario is known');
  assert.ok(await page.locator('#add-scenario').isVisible(), 'an empty page leads on');
  const before = await file();

  await page.locator('#add-scenario [name=name]').fill('notes');
  await page.locator('#add-scenario [name=url]').fill(notes.url);
  await page.locator('#add-scenario button').click();
  await page.locator('#scenario-notes[data-state=live]').waitFor();
  await page.locator('#toasts .done').waitFor();
  assert.match(await page.locator('#toasts .done').textContent(), /`notes` was added to .*callsheet\.toml/);
  await until('the verdict follows', async () => (await verdict.textContent()) === '1 tool of 1 scenario; none needs attention');
  assert.ok((await file()).startsWith(before) && (await file()).includes(notes.url));
  assert.equal(await page.locator('#add-scenario [name=name]').inputValue(), '', 'the form is ready for the next one');

  // The same again is refused with the reason.
  await page.locator('#add-scenario [name=name]').fill('notes');
  await page.locator('#add-scenario [name=url]').fill(notes.url);
  await page.locator('#add-scenario button').click();
  await page.locator('#toasts p', { hasText: 'has a scenario `notes` already' }).waitFor();

  // What works is taken out on its own page.
  await page.locator('#scenario-notes a.name').click();
  page.once('dialog', (dialog) => dialog.accept());
  await page.locator('#remove-notes').click();
  await page.locator('.badge.state-removed').first().waitFor();
  assert.equal((await file()).trim(), before.trim());
  page.once('dialog', (dialog) => dialog.accept());
  await page.locator('#forget-notes').click();
  await until('it is forgotten', async () => (await daemon.json('/api/v1/scenarios')).scenarios.length === 0);
  await close(page);
});

test('the addresses of the list are copied', async () => {
  const page = await open(browser, daemon.url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  for (const [id, text] of [['mcp-address', `${daemon.url}/mcp`], ['list-address', `${daemon.url}/api/v1/tools?format=openai`]]) {
    await page.locator(`[data-copy=${id}]`).click();
    await until(`${id} is copied`, async () => (await page.evaluate('navigator.clipboard.readText()')) === text);
  }
  await close(page);
});
