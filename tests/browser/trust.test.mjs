// A scenario from an untrusted source waits; an operator's approval admits it and a block removes
// it, each after a confirmation.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { announce, freePort } from './support/announce.mjs';
import { close, launch, open } from './support/browser.mjs';
import { Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

let browser, daemon, known, visitor;

before(async () => {
  browser = await launch();
  known = await new Scenario('notes', [tool('add_note', 'Writes a note down')]).start();
  visitor = await new Scenario('visitor', [tool('greet', 'Says hello')]).start();
  const mdnsPort = await freePort();
  daemon = await Daemon.start([known], { mdnsPort });
  await until('the visitor waits', async () => {
    await announce(mdnsPort, 'visitor', visitor.port, ['txtvers=1', 'path=/api/v1/tools', 'proto=1.0', 'id=visitor-1', 'boot=1']);
    return (await daemon.stateOf('visitor')) === 'pending';
  });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await Promise.all([known.stop(), visitor.stop()]);
});

test('a pending scenario is trusted after a question', async () => {
  const page = await open(browser, daemon.url);
  const row = page.locator('#scenario-visitor');
  await page.locator('#scenario-visitor[data-state=pending]').waitFor();
  assert.equal((await daemon.listed()).includes('greet'), false);
  const asked = [];
  page.once('dialog', (dialog) => (asked.push(dialog.message()), dialog.dismiss()));
  await row.locator('#trust-visitor').click();
  await until('it was asked', () => asked.length === 1);
  assert.match(asked[0], new RegExp(`^Trust visitor at http://[a-z0-9.]+:${visitor.port}\\? Its 1 tool `));
  assert.equal(await daemon.stateOf('visitor'), 'pending', 'a no is a no');
  page.once('dialog', (dialog) => dialog.accept());
  await row.locator('#trust-visitor').click();
  await page.locator('#scenario-visitor[data-state=live]').waitFor();
  assert.ok((await daemon.listed()).includes('greet'));
  await page.locator('#untrust-visitor').waitFor();
  await close(page);
});

test('a scenario is blocked after a question, and let in again', async () => {
  const page = await open(browser, daemon.url);
  page.once('dialog', (dialog) => dialog.accept());
  await page.locator('#block-notes').click();
  await page.locator('#scenario-notes[data-state=blocked]').waitFor();
  assert.equal((await daemon.listed()).includes('add_note'), false);
  await page.locator('#unblock-notes').click();
  await page.locator('#scenario-notes[data-state=live]').waitFor();
  await until('its tool is back', async () => (await daemon.listed()).includes('add_note'));
  const before = known.asked;
  await page.locator('#refresh-notes').click();
  await until('it was asked at once', () => known.asked > before);
  await close(page);
});
