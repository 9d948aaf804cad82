// An open page shows that a scenario goes down and comes back, without a reload.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { close, launch, open } from './support/browser.mjs';
import { Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

let browser, daemon, scenarios;

before(async () => {
  browser = await launch();
  scenarios = await Promise.all(
    ['notes', 'mail', 'maps', 'music'].map((name) => new Scenario(name, [tool(`use_${name}`, `Uses ${name}`)]).start()),
  );
  daemon = await Daemon.start(scenarios);
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await Promise.all(scenarios.map((scenario) => scenario.stop()));
});

/** Marks the document, so that a reload is noticed. */
const mark = (page) => page.evaluate(() => (globalThis.marked = true));
const marked = (page) => page.evaluate(() => globalThis.marked === true);

test('a scenario goes down and comes back on the page of all', async () => {
  const page = await open(browser, daemon.url);
  await mark(page);
  await page.locator('#scenario-notes[data-state=live]').waitFor();
  await scenarios[0].stop();
  await page.locator('#scenario-notes[data-state=down]').waitFor();
  assert.match(await page.locator('#scenario-notes').innerText(), /0 published/);
  assert.match(await page.locator('#scenario-notes').innerText(), /the last \d+ polls failed: connection refused by /);
  await until('the news tell it', async () => /notes is down/.test(await page.locator('#news').innerText()));
  assert.equal((await daemon.listed()).includes('use_notes'), false);
  await scenarios[0].start();
  await page.locator('#scenario-notes[data-state=live]').waitFor();
  await until('its tool is shown again', async () => /1 published/.test(await page.locator('#scenario-notes').innerText()));
  assert.ok((await daemon.listed()).includes('use_notes'));
  assert.ok(await marked(page), 'the page was not loaded again');
  await close(page);
});

test('its own page, its tools and the findings follow as well', async () => {
  const own = await open(browser, `${daemon.url}/dashboard/scenarios/mail`);
  const findings = await open(browser, `${daemon.url}/dashboard/findings`);
  await Promise.all([mark(own), mark(findings)]);
  await scenarios[1].stop();
  await own.locator('h1 .state-down').waitFor();
  await own.locator('#offer .bad', { hasText: 'Withdrawn from the list' }).waitFor();
  await findings.locator('section[data-code=withdrawn]', { hasText: 'mail' }).waitFor();
  await scenarios[1].start();
  await own.locator('h1 .state-live').waitFor();
  await findings.locator('section[data-code=withdrawn]').waitFor({ state: 'detached' });
  assert.ok((await marked(own)) && (await marked(findings)));
  await close(own);
  await close(findings);
});

test('a tool that a scenario offers anew appears', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools`);
  await mark(page);
  scenarios[2].tools = [...scenarios[2].tools, tool('find_route', 'Finds the way')];
  await page.locator('tr[data-tool="maps/find_route"]').waitFor();
  assert.ok(await marked(page));
  await close(page);
});

test('a daemon that goes away is told, and pages go on when it is back', async () => {
  const other = await Daemon.start(scenarios.slice(0, 1));
  const page = await open(browser, other.url);
  other.child.kill('SIGTERM');
  await other.ended;
  await page.locator('#link[data-link=lost]').waitFor();
  assert.match(await page.locator('#link').innerText(), /lost/i);
  await page.context().close();
  await other.run();
  await other.stop();
});
