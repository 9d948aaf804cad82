// Stored tools from the first to the last step, by hand: a bundle, a tool that sends requests to a real API, a call of it, and the bundle as
// an archive, which comes in again as another bundle.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { barriers, close, launch, open, shoot } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { until } from './support/until.mjs';

let browser, daemon, api;
/** What the API was sent, in order. */
const sent = [];

before(async () => {
  browser = await launch();
  api = createServer((request, response) => {
    sent.push(request.url);
    const city = new URL(request.url, 'http://localhost').searchParams.get('place');
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ days: [{ summary: `Sunny in ${city}` }] }));
  });
  await new Promise((done, failed) => api.once('error', failed).listen(0, '127.0.0.1', done));
  daemon = await Daemon.start([], { refresh: CALM, sections: ['[bundles]\npath = "bundles"\nallowed_hosts = ["127.0.0.1"]'] });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await new Promise((done) => (api.close(done), api.closeAllConnections()));
});

const bundles = async () => (await daemon.json('/tools/bundles?includeDisabled=true')).bundles;
const section = (page, id) => page.locator(`section[data-bundle="${id}"]`);

test('a bundle and a tool are added, and the tool is tried on its page', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/bundles`);
  await page.locator('#empty').waitFor();
  await page.locator('#new-bundle [name=slug]').fill('net');
  await page.locator('#new-bundle [name=displayName]').fill('Net tools');
  await page.locator('#new-bundle button').click();
  await page.getByRole('heading', { name: 'Net tools' }).waitFor();
  const [{ id }] = await bundles();

  await section(page, id).getByRole('link', { name: 'Add a tool' }).click();
  const document = {
    slug: 'forecast', version: 'v1', displayName: 'Forecast', description: 'The weather in a city', type: 'http',
    argSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    impl: { urlTemplate: `http://127.0.0.1:${api.address().port}/v1?place=\${city}`, extractExpr: '$.days[0].summary' },
  };
  await page.locator('#store-tool textarea').fill(JSON.stringify(document));
  await page.locator('#store-tool button').click();
  const row = section(page, id).locator('tr[data-tool=forecast_v1]');
  await row.waitFor();
  await until('it is in the list', async () => (await daemon.listed()).includes('forecast_v1'));
  await shoot(page, 'bundles');
  assert.deepEqual(await barriers(page), []);

  await row.getByRole('link', { name: 'Try' }).click();
  const form = page.locator('#try-tool'), answer = page.locator('#tried');
  assert.equal(await answer.isVisible(), false);
  assert.deepEqual(JSON.parse(await form.locator('textarea').inputValue()), { city: '' }, 'it begins with what is required');
  await form.locator('textarea').fill('{"city": "Paris & Rome"}');
  await form.getByRole('button', { name: 'Call' }).click();
  await answer.getByText('Sunny in Paris & Rome').waitFor();
  assert.deepEqual(sent, ['/v1?place=Paris%20%26%20Rome']);
  await shoot(page, 'tool-tried');
  assert.deepEqual(await barriers(page), []);

  // Arguments that do not fit are refused with the reason, and no request is sent.
  await form.locator('textarea').fill('{"city": 7}');
  await form.getByRole('button', { name: 'Call' }).click();
  await answer.getByText('/city').waitFor();
  assert.equal(sent.length, 1);
  await close(page);
});

test('a disabled bundle is exported, and imported again as another one', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/bundles`);
  const [{ id }] = await bundles();
  await section(page, id).getByRole('button', { name: 'Disable net' }).click();
  await section(page, id).getByText(', disabled').waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), section(page, id).getByRole('link', { name: 'Export net' }).click()]);
  assert.equal(download.suggestedFilename(), 'net.zip');
  const archive = join(daemon.home, 'net.zip');
  await download.saveAs(archive);
  assert.equal((await readFile(archive)).subarray(0, 2).toString(), 'PK');

  // The bundle that is there is disabled, so it takes no tools.
  const form = page.locator('#import-archive'), toasts = page.locator('#toasts p');
  await form.locator('[type=file]').setInputFiles(archive);
  await form.getByRole('button', { name: 'Import' }).click();
  await toasts.filter({ hasText: 'is disabled; enable it first' }).waitFor();
  assert.equal((await bundles()).length, 1);

  await form.getByLabel('as a new bundle').check();
  await form.getByRole('button', { name: 'Import' }).click();
  await toasts.filter({ hasText: 'Imported Net tools with 1 tool.' }).waitFor();
  await until('there are two', async () => (await bundles()).length === 2);
  const other = (await bundles()).find((bundle) => bundle.id !== id);
  assert.equal(other.isEnabled, false, 'it comes in as it went out');
  await section(page, other.id).locator('tr[data-tool=forecast_v1]').waitFor();
  assert.equal(await form.locator('[type=file]').inputValue(), '', 'the form is ready for the next one');
  assert.deepEqual(await daemon.listed(), []);
  await section(page, other.id).getByRole('button', { name: 'Enable net' }).click();
  await until('its tool is in the list', async () => (await daemon.listed()).includes('forecast_v1'));
  await close(page);
});

test('what is no archive is refused with the reason', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/bundles`);
  const before = await bundles();
  const notes = join(daemon.home, 'notes.zip');
  await writeFile(notes, 'to do');
  await page.locator('#import-archive [type=file]').setInputFiles(notes);
  await page.locator('#import-archive button').click();
  await page.locator('#toasts p', { hasText: 'the archive cannot be imported: it is no ZIP' }).waitFor();
  assert.deepEqual(await bundles(), before);
  await close(page);
});

test('with a token only the operator imports', async (t) => {
  const token = '0123456789abcdef-topsecret';
  const sections = ['[bundles]\npath = "bundles"'];
  const closed = await Daemon.start([], { refresh: CALM, settings: [`server.operator_token = "${token}"`], sections });
  t.after(() => closed.stop());
  const page = await open(browser, `${closed.url}/dashboard/bundles`);
  const archive = join(daemon.home, 'net.zip');
  await page.locator('#import-archive [type=file]').setInputFiles(archive);
  await page.locator('#import-archive button').click();
  await page.locator('#toasts p', { hasText: 'needs the token' }).waitFor();
  assert.deepEqual((await closed.json('/tools/bundles?includeDisabled=true')).bundles, []);
  await page.evaluate((text) => sessionStorage.setItem('operator-token', text), token);
  await page.locator('#import-archive button').click();
  await page.locator('#toasts p', { hasText: 'Imported Net tools' }).waitFor();
  await close(page);
});

test('a tool is built from a curl command and from its parts, and tried before it is stored', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/bundles`);
  const { id } = (await bundles()).find((bundle) => bundle.isEnabled);
  await section(page, id).getByRole('link', { name: 'Add a tool' }).click();
  const form = page.locator('#draft-tool'), text = page.locator('#document'), tried = page.locator('#draft-tried');
  const before = sent.length;
  await form.locator('[name=curl]').fill(`curl 'http://127.0.0.1:${api.address().port}/v2?place=Oslo' -H 'Authorization: Bearer hidden-secret'`);
  await form.getByRole('button', { name: 'Write the document' }).click();
  await page.locator('#draft-notes', { hasText: '[bundles.secrets]' }).waitFor();
  const written = JSON.parse(await text.inputValue());
  assert.deepEqual(written.impl.query, { place: '${place}' });
  assert.equal((await text.inputValue()).includes('hidden-secret'), false);

  // Without the credential, which is not configured here.
  await form.locator('[name=curl]').fill('');
  await form.locator('[name=address]').fill(`http://127.0.0.1:${api.address().port}/v2`);
  await form.locator('[name=values]').fill('place = Oslo');
  await form.getByRole('button', { name: 'Write the document' }).click();
  await page.waitForFunction(() => !document.querySelector('#document').value.includes('"auth"'));
  await page.locator('#trial-arguments').fill('{"place": "Bergen"}');
  await page.locator('#try-draft').getByRole('button', { name: 'Try' }).click();
  await tried.getByText('Sunny in Bergen').waitFor();
  assert.deepEqual(sent.slice(before), ['/v2?place=Bergen']);
  assert.deepEqual((await daemon.listed()).filter((name) => name.startsWith('v2')), [], 'nothing is stored');
  await shoot(page, 'tool-draft');
  assert.deepEqual(await barriers(page), []);

  await page.locator('#store-tool button').click();
  await section(page, id).locator('tr[data-tool=v2_v1]').waitFor();
  await until('it is in the list', async () => (await daemon.listed()).includes('v2_v1'));
  await close(page);
});
