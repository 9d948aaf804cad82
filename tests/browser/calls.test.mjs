// Calls that need approval appear on an open page, run once when they are approved, and never when
// they are rejected.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { barriers, close, launch, open, shoot, sticking } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

/** More stops than the page has before what is looked for. */
const STOPS = 40;

let browser, daemon, mail;

before(async () => {
  browser = await launch();
  const send = tool('send_mail', 'Sends a letter', { properties: { to: { type: 'string' } }, requires_approval: true });
  const lines = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`line_${at}`, { type: 'string' }]));
  const fill = tool('fill', 'Fills a form', { properties: lines, required: Object.keys(lines) });
  mail = await new Scenario('mail', [send, tool('count', 'Counts letters'), fill]).start();
  daemon = await Daemon.start([mail], { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await mail.stop();
});

const page = () => open(browser, `${daemon.url}/dashboard/calls`);
const call = (name, args) => daemon.send('POST', '/api/v1/tools/execute', { tool_name: name, arguments: args });
const approval = (id) => daemon.json(`/api/v1/approvals/${id}`);
const ranFor = (to) => mail.ran.filter(({ arguments: given }) => given.to === to).length;

/** Asks for a letter to be sent, and gives the id under which that waits. */
async function wish(to) {
  const { approval_id: id } = await call('send_mail', { to });
  return id;
}

/** The card of a call that waits; it comes by itself. */
async function card(page, id) {
  const card = page.locator(`section[data-approval="${id}"]`);
  await card.waitFor();
  return card;
}

/** Goes on with the tab key until the button is reached. */
async function tabTo(page, button) {
  for (let stop = 0; stop < STOPS; stop += 1) {
    await page.keyboard.press('Tab');
    if (await button.evaluate((one) => one === document.activeElement)) return;
  }
  throw new Error('it is not reached with the tab key');
}

/** Answers the next question of the page, and keeps what it said. */
function answering(page, yes) {
  const asked = [];
  page.once('dialog', (dialog) => (asked.push(dialog.message()), yes ? dialog.accept() : dialog.dismiss()));
  return asked;
}

test('a call that waits is seen without a reload, and a yes runs it once', async () => {
  const calls = await page();
  await calls.evaluate(() => (globalThis.marked = true));
  await calls.locator('#empty').waitFor();
  const id = await wish('ann@example.org');
  const waiting = await card(calls, id);
  assert.match(await waiting.innerText(), /mail\/send_mail[^]*ann@example\.org/);
  await shoot(calls, 'calls-waiting');
  assert.deepEqual(await barriers(calls), []);
  assert.equal(ranFor('ann@example.org'), 0, 'nothing runs before the yes');

  const no = answering(calls, false);
  await waiting.getByRole('button', { name: 'Approve' }).click();
  await until('it was asked', () => no.length === 1);
  assert.match(no[0], /Run mail\/send_mail with exactly these arguments\?/);
  assert.equal((await approval(id)).state, 'waiting', 'thinking better of it is no answer');

  answering(calls, true);
  await waiting.getByRole('button', { name: 'Approve' }).click();
  const row = calls.locator(`tr[data-approval="${id}"]`);
  await row.waitFor();
  await until('it is told as answered', async () => /answered/.test(await row.innerText()));
  await waiting.waitFor({ state: 'detached' });
  assert.equal(ranFor('ann@example.org'), 1);
  const json = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' };
  const again = await fetch(`${daemon.url}/api/v1/approvals/${id}/approve`, json);
  assert.equal(again.status, 409, 'a yes is used up');
  assert.equal(ranFor('ann@example.org'), 1);
  assert.ok(await calls.evaluate(() => globalThis.marked === true), 'the page was not loaded again');
  await close(calls);
});

test('a refusal says why, to people and to whoever asked', async () => {
  const calls = await page();
  const id = await wish('bob@example.org');
  const waiting = await card(calls, id);
  await waiting.getByLabel('Reason (optional)').fill('he has left the company');
  await waiting.getByRole('button', { name: 'Reject' }).click();
  const row = calls.locator(`tr[data-approval="${id}"]`);
  await row.waitFor();
  assert.match(await row.innerText(), /rejected[^]*he has left the company/);
  const told = await approval(id);
  assert.deepEqual([told.state, told.reason], ['rejected', 'he has left the company']);
  assert.equal(ranFor('bob@example.org'), 0);
  assert.deepEqual(await barriers(calls), []);
  await row.getByRole('link', { name: 'Details of mail/send_mail' }).click();
  await calls.locator('h1', { hasText: 'mail/send_mail rejected' }).waitFor();
  assert.match(await calls.locator('main').innerText(), /he has left the company[^]*bob@example\.org/);
  await shoot(calls, 'call');
  assert.deepEqual(await barriers(calls), []);
  await close(calls);
});

test('long texts of calls stay on a narrow screen', async () => {
  const name = `nowhere_${'to_be_found_'.repeat(8)}`;
  const body = JSON.stringify({ tool_name: name, arguments: {} });
  const refused = await fetch(`${daemon.url}/api/v1/tools/execute`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  assert.equal(refused.status, 404);
  await wish(`${'dee'.repeat(40)}@example.org`);
  const calls = await open(browser, `${daemon.url}/dashboard/calls`, { width: 390, height: 844 });
  await calls.locator('#latest-calls', { hasText: name }).waitFor();
  assert.deepEqual(await sticking(calls), []);
  await shoot(calls, 'calls-narrow');
  await close(calls);
});

test('the field for the input of a tool is as high as what is in it', async () => {
  for (const width of [390, 1280]) {
    const page = await open(browser, `${daemon.url}/dashboard/tool?id=mail%2Ffill`, { width, height: 900 });
    const field = page.locator('#try-tool textarea');
    assert.match(await field.inputValue(), /"line_11"/);
    assert.ok(await field.evaluate((one) => one.scrollHeight <= one.clientHeight + 1), `${width}: all of it is seen`);
    assert.ok(await field.evaluate((one) => one.clientWidth > 300), `${width}: it is as wide as its card`);
    assert.deepEqual(await sticking(page), []);
    await close(page);
  }
});

test('a reason that is being written stays when another call comes', async () => {
  const calls = await page();
  const first = await card(calls, await wish('cid@example.org'));
  const reason = first.getByLabel('Reason (optional)');
  await reason.fill('not on a Sun');
  const second = await card(calls, await wish('dan@example.org'));
  assert.equal(await reason.inputValue(), 'not on a Sun');
  await reason.press('End');
  await calls.keyboard.type('day');
  assert.equal(await reason.inputValue(), 'not on a Sunday', 'one goes on where one was');
  for (const one of [first, second]) {
    await one.getByRole('button', { name: 'Reject' }).click();
    await one.waitFor({ state: 'detached' });
  }
  await close(calls);
});

test('a yes and a no with the keyboard alone', async () => {
  const calls = await page();
  const [yes, no] = [await wish('eve@example.org'), await wish('fay@example.org')];
  const approve = (await card(calls, yes)).getByRole('button', { name: 'Approve' });
  await tabTo(calls, approve);
  answering(calls, true);
  await calls.keyboard.press('Enter');
  await until('it ran', () => ranFor('eve@example.org') === 1);
  await calls.locator(`tr[data-approval="${yes}"]`).waitFor();
  const reason = (await card(calls, no)).getByLabel('Reason (optional)');
  await reason.focus();
  await calls.keyboard.type('too late');
  await calls.keyboard.press('Enter');
  await calls.locator(`tr[data-approval="${no}"]`, { hasText: 'too late' }).waitFor();
  assert.equal(ranFor('fay@example.org'), 0);
  await close(calls);
});

test('a call that was decided elsewhere leaves the page, and a late yes says so', async () => {
  const calls = await page();
  const id = await wish('gus@example.org');
  const waiting = await card(calls, id);
  // The stream is held back, so that the page still shows what is over.
  await calls.route('**/dashboard/calls/now', (route) => route.abort());
  await daemon.send('POST', `/api/v1/approvals/${id}/reject`, { by: 'ops', reason: 'no' });
  answering(calls, true);
  await waiting.getByRole('button', { name: 'Approve' }).click();
  await calls.locator('#toasts', { hasText: 'That did not work' }).waitFor();
  assert.equal(ranFor('gus@example.org'), 0);
  await close(calls);
});

test('with a token nobody decides without it, and the tab keeps it to itself', async (t) => {
  const token = '0123456789abcdef-topsecret';
  const closed = await Daemon.start([mail], { refresh: CALM, settings: [`server.operator_token = "${token}"`] });
  t.after(() => closed.stop());
  const asked = await closed.send('POST', '/api/v1/tools/execute', { tool_name: 'send_mail', arguments: { to: 'hal@example.org' } });
  const calls = await open(browser, `${closed.url}/dashboard/calls`);
  const waiting = await card(calls, asked.approval_id);
  const told = calls.locator('#operator-told');
  const field = calls.getByLabel('Operator token');
  assert.deepEqual(await barriers(calls), []);
  await shoot(calls, 'calls-token');
  const approve = async () => {
    answering(calls, true);
    await waiting.getByRole('button', { name: 'Approve' }).click();
  };
  await approve();
  await calls.locator('#toasts', { hasText: 'needs the token' }).waitFor();
  await until('it is told where', async () => /Write the token first/.test(await told.innerText()));
  assert.ok(await field.evaluate((one) => one === document.activeElement), 'one goes on where it is written');
  await calls.keyboard.type('0123456789abcdef-hash');
  await calls.keyboard.press('Enter');
  await until('the tab has it', async () => /until it is closed/.test(await told.innerText()));
  assert.equal(await field.inputValue(), '', 'it is not shown any more');
  await approve();
  await until('it was the wrong one', async () => /not the token/.test(await told.innerText()));
  assert.equal(ranFor('hal@example.org'), 0);
  await field.fill(token);
  await calls.getByRole('button', { name: 'Use the token in this tab' }).click();
  await approve();
  await calls.locator(`tr[data-approval="${asked.approval_id}"]`).waitFor();
  await until('it ran', () => ranFor('hal@example.org') === 1);
  assert.deepEqual(await calls.context().cookies(), [], 'cookies would go to every port of the host');
  // It is there on the other pages of this tab, and not in another one.
  const select = (page) => page.locator('tr[data-tool="mail/send_mail"] select');
  await calls.goto(`${closed.url}/dashboard/tools`);
  await select(calls).selectOption('skip');
  await calls.getByText('by global tool:mail/send_mail').waitFor();
  const other = await open(browser, `${closed.url}/dashboard/tools`);
  await other.getByRole('button', { name: 'Reset approval of send_mail' }).click();
  await other.locator('#toasts', { hasText: 'needs the token' }).waitFor();
  assert.equal(await select(other).inputValue(), 'skip', 'it stays');
  await calls.goto(`${closed.url}/dashboard/calls`);
  await calls.getByRole('button', { name: 'Forget the token' }).click();
  assert.equal(await calls.evaluate(() => sessionStorage.getItem('operator-token')), null);
  await close(calls);
  await close(other);
});

test("a tool's page tells how it was called", async () => {
  const address = `${daemon.url}/dashboard/tool?id=mail%2Fcount`;
  const before = await open(browser, address);
  await before.getByText('No calls are recorded').waitFor();
  await close(before);
  assert.equal((await call('count', { text: 'letters' })).success, true);
  mail.run = async () => ({ success: false, error: 'the mailbox is locked', code: 'locked' });
  assert.equal((await call('count', { text: 'letters' })).success, false);
  const after = await open(browser, address);
  const told = after.getByRole('region', { name: 'Calls' });
  const row = (name) => told.getByRole('row', { name: new RegExp(`^${name}`) });
  assert.match(await row('Calls').innerText(), /\b2\b/);
  assert.match(await row('Failures').innerText(), /\b1\b[^]*failed 1/);
  await row('Average duration').waitFor();
  await row('Last called').waitFor();
  assert.deepEqual(await barriers(after), []);
  await shoot(after, 'tool-called');
  await close(after);
});

test('a call that is over appears by itself, on the page of all calls and on that of its tool', async () => {
  mail.run = async () => ({ success: false, error: 'the mailbox is locked', code: 'locked' });
  const calls = await page();
  const latest = calls.locator('#latest-calls tr[data-call]', { hasText: 'mail/count' });
  const before = await latest.count();
  await call('count', { text: 'letters' });
  await until('the call is there', async () => (await latest.count()) === before + 1);
  assert.match(await latest.first().innerText(), /failed[^]*the mailbox is locked/);
  assert.deepEqual(await barriers(calls), []);
  await shoot(calls, 'calls-latest');
  await close(calls);
  const tool = await open(browser, `${daemon.url}/dashboard/tool?id=mail%2Fcount`);
  const rows = tool.locator('#tool-calls tr[data-call]');
  const known = await rows.count();
  await tool.locator('#try-tool button[type=submit]').click();
  await until('the new call is there', async () => (await rows.count()) === known + 1);
  assert.deepEqual(await barriers(tool), []);
  await close(tool);
});
