// Changes in the table of tools reach the published list, or are undone with the reason shown.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { close, launch, open } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { locked } from './support/locked.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

let browser, daemon, scenarios;

before(async () => {
  browser = await launch();
  scenarios = [
    await new Scenario('files', [
      tool('search', 'Finds files by their words', { category: 'reading' }),
      tool('read_file', 'Reads a file', { category: 'reading', tags: ['disk'] }),
      tool('delete_file', 'Deletes a file for good', { category: 'writing', tags: ['disk'], requires_approval: true }),
    ]).start(),
    await new Scenario('mail', [
      tool('search', 'Finds letters', { category: 'reading' }),
      tool('send_mail', 'Sends a letter', { category: 'writing' }),
    ]).start(),
  ];
  daemon = await Daemon.start(scenarios, { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await Promise.all(scenarios.map((scenario) => scenario.stop()));
});

const row = (page, id) => page.locator(`tr[data-tool="${id}"]`);
const box = (page, id) => row(page, id).locator('input[data-member=enabled]');
const tools = (scope = '') => `${daemon.url}/dashboard/tools${scope && `?scope=${scope}`}`;

test('a toggle changes the published list, and a reset brings it back', async () => {
  const page = await open(browser, tools());
  assert.ok((await daemon.listed()).includes('read_file'));
  await box(page, 'files/read_file').click();
  await row(page, 'files/read_file').getByText('by global tool:files/read_file').waitFor();
  assert.equal((await daemon.listed()).includes('read_file'), false);
  assert.equal(await box(page, 'files/read_file').isChecked(), false);
  await row(page, 'files/read_file').getByRole('button', { name: 'Reset enabled of read_file' }).click();
  await row(page, 'files/read_file').getByText('scenario default').first().waitFor();
  await until('it is listed again', async () => (await daemon.listed()).includes('read_file'));
  await close(page);
});

test('two tools of one name are switched each by itself', async () => {
  const page = await open(browser, tools());
  assert.deepEqual((await daemon.listed()).filter((name) => name.endsWith('search')), ['files__search', 'mail__search']);
  await box(page, 'files/search').click();
  await until('one is off', async () => !(await box(page, 'files/search').isChecked()) && !(await daemon.listed()).includes('files__search'));
  assert.ok((await daemon.listed()).includes('mail__search'), 'the other is not touched');
  assert.ok(await box(page, 'mail/search').isChecked());
  await box(page, 'mail/search').click();
  await until('both are off', async () => !(await daemon.listed()).includes('mail__search'));
  await box(page, 'files/search').click();
  await until('the first is on again', async () => (await daemon.listed()).includes('files__search'));
  assert.equal((await daemon.listed()).includes('mail__search'), false);
  assert.equal(await box(page, 'mail/search').isChecked(), false);
  await close(page);
});

test('a setting of a chat is of that chat alone', async () => {
  const page = await open(browser, tools('chat:7'));
  await row(page, 'files/delete_file').locator('select').selectOption('skip');
  await row(page, 'files/delete_file').getByText('by chat:7 tool:files/delete_file').waitFor();
  const approval = async (query) => (await daemon.json(`/api/v1/tools${query}`)).tools.find(({ name }) => name === 'delete_file').requires_approval;
  assert.equal(await approval('?chat_id=7'), false);
  assert.equal(await approval(''), true);
  await close(page);
});

test('a toggle that cannot be kept is taken back, and says why', async () => {
  const page = await open(browser, tools());
  await locked(daemon, async () => {
    await box(page, 'mail/send_mail').click();
    await page.locator('#toasts p').waitFor();
    assert.match(await page.locator('#toasts p').innerText(), /That did not work: .* the stored state cannot be written, so it has no effect/s);
    assert.ok(await box(page, 'mail/send_mail').isChecked(), 'it shows what holds');
    assert.ok((await daemon.listed()).includes('send_mail'));
  });
  const dismiss = page.getByRole('button', { name: 'Dismiss' });
  assert.ok((await dismiss.boundingBox()).height < 40, 'its word stands on one line');
  await dismiss.click();
  await page.locator('#toasts p').waitFor({ state: 'detached' });
  // Once the store is free, the same toggle holds.
  await box(page, 'mail/send_mail').click();
  await until('it is off', async () => !(await daemon.listed()).includes('send_mail'));
  await close(page);
});

test('search and filters find as one types', async () => {
  const page = await open(browser, tools());
  const shown = () => page.locator('tr[data-tool]').evaluateAll((rows) => rows.map((one) => one.dataset.tool));
  await page.keyboard.press('/');
  await page.keyboard.type('letter');
  await until('letters are found', async () => (await shown()).join() === 'mail/search,mail/send_mail');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('delte file');
  await until('a slip is forgiven', async () => (await shown())[0] === 'files/delete_file');
  await page.locator('[data-search]').fill('');
  await page.locator('select[name=scenario]').selectOption('files');
  await page.locator('select[name=category]').selectOption('writing');
  await until('filters hold together', async () => (await shown()).join() === 'files/delete_file');
  await page.locator('[data-search]').fill('nothing like that');
  await page.getByText('tools match.').waitFor();
  await page.getByRole('link', { name: 'Show all' }).click();
  await until('all are shown', async () => (await shown()).length === 5);
  await close(page);
});

test('an alias and a priority are set, and that it is always listed, from the page of a tool', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tool?id=mail%2Fsend_mail`);
  await page.getByRole('link', { name: 'Set its alias or priority, or list it always' }).click();
  const form = page.locator('#prefer');
  assert.equal(await form.getByLabel('For').inputValue(), 'tool:mail/send_mail');
  await form.getByLabel('Alias').fill('write_letter');
  await form.getByLabel('Priority').fill('-3');
  await form.getByLabel('Always listed').selectOption('true');
  await form.getByRole('button', { name: 'Set' }).click();
  const shown = page.locator('tr[data-target="tool:mail/send_mail"]');
  await until('the row shows them', async () => /write_letter\s+-3\s+yes/.test(await shown.innerText()));
  const [set] = (await daemon.json('/api/v1/preferences?target=tool:mail/send_mail')).preferences;
  assert.deepEqual([set.alias, set.priority, set.pinned], ['write_letter', -3, true]);
  await close(page);
});
