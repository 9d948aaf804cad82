// Every page as people see it: light and dark, on a telephone and on a wide screen. Nothing sticks out, and nothing that matters bars
// the way of those who do not see or use a mouse. The pictures are kept to be looked at.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { announce, freePort } from './support/announce.mjs';
import { barriers, close, launch, open, shoot, sticking } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { office } from './support/office.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

let browser, daemon, scenarios, visitor, empty, wrong;

before(async () => {
  browser = await launch();
  scenarios = await office();
  visitor = await new Scenario('label-printer', [tool('print_label', 'Prints a label')], { description: 'Prints labels in the mail room' }).start();
  const mdnsPort = await freePort();
  daemon = await Daemon.start(Object.values(scenarios), { refresh: CALM, mdnsPort, grace: '1s' });
  await until('the printer waits', async () => {
    await announce(mdnsPort, 'label-printer', visitor.port, ['txtvers=1', 'path=/api/v1/tools', 'proto=1.0', 'id=printer-1', 'boot=1']);
    return (await daemon.stateOf('label-printer')) === 'pending';
  });
  await history();
  empty = await Daemon.start([], { refresh: CALM });
});

after(async () => {
  await browser.close();
  await Promise.all([daemon.stop(), empty.stop()]);
  await Promise.all([...Object.values(scenarios), visitor].map((scenario) => scenario.stop()));
});

/** A day at the office in a few seconds: what an operator decided, who fell ill. */
async function history() {
  const refresh = (name) => daemon.send('POST', `/api/v1/scenarios/${name}/refresh`);
  for (let round = 0; round < 12; round += 1) {
    for (const name of ['notes', 'mail', 'calendar', 'browser']) await refresh(name);
  }
  await daemon.send('POST', '/api/v1/scenarios/old-crm/block');
  const prefer = (body) => daemon.send('PUT', '/api/v1/preferences', body);
  await prefer({ scope: 'global', target: 'tool:browser/run_script', enabled: false });
  await prefer({ scope: 'global', target: 'tag:letters', approval: 'require' });
  await prefer({ scope: 'profile:assistant', target: 'category:writing', approval: 'require' });
  await prefer({ scope: 'chat:summer-party', target: 'scenario:calendar', enabled: true });
  scenarios.warehouse.stop();
  await until('the warehouse is down', async () => {
    await refresh('warehouse');
    return (await daemon.stateOf('warehouse')) === 'down';
  });
}

const PAGES = [
  ['scenarios', '/'],
  ['scenario', '/dashboard/scenarios/notes'],
  ['scenario-down', '/dashboard/scenarios/warehouse'],
  ['tools', '/dashboard/tools'],
  ['tool', '/dashboard/tool?id=notes%2Fadd_note'],
  ['calls', '/dashboard/calls'],
  ['findings', '/dashboard/findings'],
  ['findings-all', '/dashboard/findings?formats=all'],
  ['preferences', '/dashboard/preferences'],
  ['configuration', '/dashboard/configuration'],
  ['refused', '/dashboard/scenarios/nobody'],
];

for (const scheme of ['light', 'dark']) {
  for (const width of [360, 1600]) {
    test(`every page, ${scheme}, ${width} pixels wide`, async () => {
      wrong = [];
      for (const [name, path] of PAGES) {
        const url = daemon.url + path;
        const page = name === 'refused' ? await refused(url, scheme, width) : await open(browser, url, { width, height: 800, scheme });
        await looked(page, `${name}-${scheme}-${width}`);
        await close(page);
      }
      const nothing = await open(browser, empty.url, { width, height: 800, scheme });
      await looked(nothing, `empty-${scheme}-${width}`);
      await close(nothing);
      assert.deepEqual(wrong, []);
    });
  }
}

/** A page that has no stream. */
async function refused(url, colorScheme, width) {
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme });
  const page = await context.newPage();
  page.wrong = [];
  assert.equal((await page.goto(url)).status(), 404);
  return page;
}

async function looked(page, name) {
  await shoot(page, name);
  const [out, barred] = [await sticking(page), await barriers(page)];
  if (out.length > 0 || barred.length > 0) wrong.push({ name, out, barred });
}

test('what opens on pages is as good', async () => {
  wrong = [];
  for (const width of [360, 1600]) {
    const tools = await open(browser, `${daemon.url}/dashboard/tools`, { width, height: 800 });
    await tools.locator('#formats > summary').click();
    await tools.locator('#formats-table table').first().waitFor();
    await looked(tools, `tools-formats-light-${width}`);
    await close(tools);
    const scenario = await open(browser, `${daemon.url}/dashboard/scenarios/mail`, { width, height: 800 });
    await scenario.locator('#model > summary').click();
    await scenario.getByRole('button', { name: 'Poll now' }).click();
    await scenario.locator('#raw-text', { hasText: '"name": "bad tool!"' }).waitFor();
    await scenario.locator('#model-text', { hasText: 'send_mail' }).waitFor();
    await looked(scenario, `scenario-manifest-light-${width}`);
    await close(scenario);
  }
  assert.deepEqual(wrong, []);
});

test('tables fit a common screen, and long addresses are cut', async () => {
  const page = await open(browser, daemon.url, { width: 1280, height: 800 });
  const scrolled = await page.locator('.scroll').evaluateAll((tables) => tables.filter((table) => table.scrollWidth > table.clientWidth).length);
  assert.equal(scrolled, 0, 'nobody has to scroll to the side for the actions');
  const address = page.locator('#scenario-notes .address');
  assert.equal(await address.innerText(), await address.getAttribute('title'), 'a short one is whole');
  await address.evaluate((one) => (one.textContent = one.textContent.repeat(5)));
  assert.ok(await address.evaluate((one) => one.scrollWidth > one.clientWidth && one.getClientRects().length === 1), 'a long one stays in its line');
  await close(page);
});

test('settings are searched, and the defaults can be left out', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/configuration`, { width: 1280, height: 800 });
  const rows = page.locator('tr[data-key]');
  const all = await rows.count();
  await page.getByLabel('Only what is set').check();
  await page.getByRole('button', { name: 'Show' }).click();
  await page.waitForURL(/set=true/);
  const set = await rows.count();
  assert.ok(set > 0 && set < all, `${set} of ${all}`);
  assert.equal(await page.getByText('default', { exact: true }).count(), 0);
  await page.getByLabel('Search').fill('LISTEN');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.locator('section[data-section=server] tr[data-key="server.listen"]').waitFor();
  assert.equal(await rows.count(), 1);
  await close(page);
});

test('the picture of the README', async () => {
  const page = await open(browser, daemon.url, { width: 1400, height: 900 });
  await page.screenshot({ path: `${process.env.BROWSER_SHOTS}/scenarios.png`, animations: 'disabled' });
  await close(page);
});
