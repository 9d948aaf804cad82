// Five thousand tools: they load while the user scrolls, none is missing, and the page stays quick.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { close, launch, open } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

const SCENARIOS = 10;
const EACH = 500;
/** No answer to a key may take longer; people notice a tenth of that, and machines of a build farm are slow. */
const SLOWEST = 2_000;

let browser, daemon, scenarios;

before(async () => {
  browser = await launch();
  scenarios = await Promise.all(
    Array.from({ length: SCENARIOS }, (_, one) =>
      new Scenario(
        `shop${one}`,
        Array.from({ length: EACH }, (_, n) => tool(`shop${one}_item_${String(n).padStart(3, '0')}`, `Sells item ${n} of shop ${one}`, { category: `aisle${n % 7}` })),
      ).start(),
    ),
  );
  daemon = await Daemon.start(scenarios, { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await Promise.all(scenarios.map((scenario) => scenario.stop()));
});

test('all of them are reached by scrolling', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools`);
  await page.getByText('5000 tools').waitFor();
  const rows = page.locator('tr[data-tool]');
  const total = SCENARIOS * EACH;
  let shown = 0;
  while (shown < total) {
    // As someone who holds the End key.
    shown = await page
      .waitForFunction((before) => {
        globalThis.scrollTo(0, document.documentElement.scrollHeight);
        const now = document.querySelectorAll('tr[data-tool]').length;
        return now > before && now;
      }, shown)
      .then((found) => found.jsonValue());
  }
  const ids = await rows.evaluateAll((all) => all.map((one) => one.dataset.tool));
  assert.equal(new Set(ids).size, total, 'each once');
  await page.locator('tr.more').waitFor({ state: 'detached' });
  // The last one is as alive as the first.
  const last = rows.last();
  await last.locator('input[data-member=enabled]').click();
  const id = ids.at(-1);
  await until('the last one is off', async () => !(await daemon.listed()).includes(id.split('/')[1]));
  await close(page);
});

test('search in them answers at once', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools`);
  const begun = Date.now();
  await page.locator('[data-search]').fill('shop7_item_123');
  await until('it is found', async () => {
    const ids = await page.locator('tr[data-tool]').evaluateAll((all) => all.map((one) => one.dataset.tool));
    return ids.length === 1 && ids[0] === 'shop7/shop7_item_123';
  });
  const took = Date.now() - begun;
  assert.ok(took < SLOWEST, `${took} ms`);
  await close(page);
});

test('all of them are changed at once', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/tools`);
  page.on('dialog', (dialog) => dialog.accept());
  await page.locator('#tick-matching').check();
  await page.locator('#bulk select').selectOption('disable');
  await page.locator('#bulk button').click();
  await page.getByText('5000 tools taken out of the list for global.').waitFor();
  assert.equal((await daemon.listed()).length, 0);
  await close(page);
});
