// The numbers in the navigation follow what happens, on every page and without requests of their own; and boxes of findings stay open.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { barriers, close, launch, open, shoot, sticking } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { Guarded } from './support/guarded.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

let browser, daemon, mail, notes, crm;

before(async () => {
  browser = await launch();
  const send = tool('send_mail', 'Sends a letter', { properties: { to: { type: 'string' } }, requires_approval: true });
  const common = ['search', 'open', 'list'].map((name) => tool(name, `Does ${name}`));
  mail = await new Scenario('mail', [send, ...common]).start();
  notes = await new Scenario('notes', [...common, { name: 'bad tool!', parameters: 'none' }]).start();
  crm = await new Guarded('crm', [tool('find_customer', 'Finds a customer')]).start();
  daemon = await Daemon.start([mail, notes, crm], { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await Promise.all([mail, notes, crm].map((scenario) => scenario.stop()));
});

const refresh = (name) => daemon.send('POST', `/api/v1/scenarios/${name}/refresh`);
/** The link of the navigation to a page, as it is read out: its name, and its number in words. */
const link = (page, name) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true });

test('numbers come, change and go while the page stays as it is', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/preferences`);
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.evaluate(() => (globalThis.marked = true));
  await link(page, 'Scenarios (1 needs authorization)').waitFor();
  await link(page, 'Findings (2 errors)').waitFor();
  await link(page, 'Calls').waitFor();

  const ids = [];
  for (const to of ['ann', 'bob']) {
    const { approval_id: id } = await daemon.send('POST', '/api/v1/tools/execute', { tool_name: 'send_mail', arguments: { to } });
    ids.push(id);
  }
  await link(page, 'Calls (2 wait for a decision)').waitFor();
  assert.equal(await page.locator('a[href="/dashboard/calls"] .tally').innerText(), '2');
  await shoot(page, 'numbers');
  assert.deepEqual([await barriers(page), await sticking(page)], [[], []]);
  await daemon.send('POST', `/api/v1/approvals/${ids[0]}/reject`, {});
  await link(page, 'Calls (1 waits for a decision)').waitFor();
  await daemon.send('POST', `/api/v1/approvals/${ids[1]}/approve`, {});
  await link(page, 'Calls').waitFor();

  notes.tools = notes.tools.slice(0, 3);
  await refresh('notes');
  await link(page, 'Findings (1 error)').waitFor();
  const numbers = asked.filter((url) => !url.endsWith('/dashboard/preferences/now'));
  assert.deepEqual(numbers, [], 'the numbers need no requests');
  assert.ok(await page.evaluate(() => globalThis.marked === true), 'the page was not loaded again');
  await close(page);
});

test('findings are opened, filtered and stay open when they are fetched again', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/findings`);
  const collisions = page.locator('section[data-code=name-collision] details');
  assert.equal(await collisions.count(), 1, 'one line for all tools of the two');
  assert.match(await collisions.innerText(), /^mail, notes: 3 names in common: list, open, search$/);
  await collisions.locator('summary').click();
  await collisions.getByRole('link', { name: 'mail/search' }).waitFor();
  await shoot(page, 'findings-open');
  assert.deepEqual(await barriers(page), []);
  await daemon.send('PUT', '/api/v1/preferences', { scope: 'global', target: 'tool:mail/send_mail', enabled: false });
  await page.locator('section[data-code=disabled]').waitFor();
  await collisions.getByRole('link', { name: 'mail/search' }).waitFor();
  assert.ok(await collisions.evaluate((box) => box.open));

  await page.locator('#filter select[name=severity]').selectOption('error');
  await collisions.waitFor({ state: 'detached' });
  await page.locator('section[data-code=needs-authorization]').waitFor();
  await page.locator('#filter select[name=severity]').selectOption('');
  await page.locator('#filter select[name=code]').selectOption('disabled');
  await until('one kind is shown', async () => (await page.locator('#findings section').count()) === 1);
  await close(page);
});
