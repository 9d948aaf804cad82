// Many tools are ticked and changed at once, and one sentence shows the result.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { close, launch, open } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { locked } from './support/locked.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

const TOOLS = 130;

let browser, daemon, shop;

before(async () => {
  browser = await launch();
  shop = await new Scenario('shop', Array.from({ length: TOOLS }, (_, n) => tool(`item_${String(n).padStart(3, '0')}`, `Sells item ${n}`))).start();
  daemon = await Daemon.start([shop], { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await shop.stop();
});

const pick = (page, name) => page.locator(`tr[data-tool="shop/${name}"] input.pick`);
const toast = async (page) => {
  await page.locator('#toasts p').waitFor();
  const text = await page.locator('#toasts p span').innerText();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.locator('#toasts p').waitFor({ state: 'detached' });
  return text;
};

test('ticked tools are changed together, and ticks outlive rows that come anew', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools`);
  await pick(page, 'item_003').check();
  await pick(page, 'item_005').check();
  assert.equal(await page.locator('#ticked').innerText(), '2 tools are ticked');
  // Somebody else changes something meanwhile.
  await daemon.send('PUT', '/api/v1/preferences', { scope: 'global', target: 'tool:shop/item_001', enabled: false });
  await page.locator('tr[data-tool="shop/item_001"]').getByText('by global tool:shop/item_001').waitFor();
  assert.ok(await pick(page, 'item_005').isChecked());
  await page.locator('#bulk select').selectOption('disable');
  await page.getByRole('button', { name: 'Apply to the ticked' }).click();
  assert.equal(await toast(page), '2 tools taken out of the list for global.');
  const listed = await daemon.listed();
  assert.equal(listed.length, TOOLS - 3);
  assert.ok(!listed.includes('item_003') && !listed.includes('item_005'));
  await until('the rows show it', async () => !(await page.locator('tr[data-tool="shop/item_003"] input[data-member=enabled]').isChecked()));
  assert.equal(await page.locator('#ticked').innerText(), 'No tool is ticked');
  await close(page);
});

test('with the keyboard, and nothing is sent when nothing is ticked', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools`);
  await page.locator('#bulk button').focus();
  await page.keyboard.press('Enter');
  assert.match(await toast(page), /Tick the tools/);
  await pick(page, 'item_010').focus();
  await page.keyboard.press('Space');
  await page.locator('#bulk select').focus();
  await page.keyboard.type('require');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await toast(page), '1 tool set to require approval for global.');
  assert.deepEqual((await daemon.json('/api/v1/preferences?target=tool:shop/item_010')).preferences.map(({ approval }) => approval), ['require']);
  await close(page);
});

test('more than twenty are asked about, shown ones and all that match', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools?scope=chat:9`);
  const questions = [];
  page.on('dialog', (dialog) => (questions.push(dialog.message()), questions.length === 1 ? dialog.dismiss() : dialog.accept()));
  await page.locator('#tick-shown').check();
  assert.equal(await page.locator('#ticked').innerText(), '100 tools are ticked');
  await page.locator('#bulk select').selectOption('disable');
  await page.locator('#bulk button').click();
  await until('it was asked', () => questions.length === 1);
  assert.equal(questions[0], '100 tools of chat:9: take out of the list?');
  assert.deepEqual((await daemon.json('/api/v1/preferences?scope=chat:9')).preferences, [], 'a no is a no');
  await page.locator('#tick-matching').check();
  assert.equal(await page.locator('#ticked').innerText(), `${TOOLS} tools are ticked`);
  await page.locator('#bulk button').click();
  assert.equal(await toast(page), `${TOOLS} tools taken out of the list for chat:9.`);
  assert.equal((await daemon.listed('?chat_id=9')).length, 0);
  assert.ok((await daemon.listed()).length > 100, 'others are not touched');
  await close(page);
});

test('a change that cannot be kept changes nothing, and says why', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools`);
  const before = await daemon.listed();
  await locked(daemon, async () => {
    await pick(page, 'item_020').check();
    await pick(page, 'item_021').check();
    await page.locator('#bulk select').selectOption('disable');
    await page.locator('#bulk button').click();
    assert.match(await toast(page), /the stored state cannot be written, so it has no effect/);
  });
  assert.deepEqual(await daemon.listed(), before);
  assert.ok(await pick(page, 'item_020').isChecked(), 'the ticks stay, to try again');
  await page.locator('#bulk button').click();
  assert.match(await toast(page), /^2 tools taken out/);
  await close(page);
});
