// The plot of a scenario's latencies: single values under the pointer, and a zoom that stays while
// answers arrive.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { barriers, close, launch, open, shoot } from './support/browser.mjs';
import { CALM, Daemon } from './support/daemon.mjs';
import { Scenario, tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

let browser, daemon, notes;

before(async () => {
  browser = await launch();
  notes = await new Scenario('notes', [tool('add_note', 'Writes a note down')]).start();
  daemon = await Daemon.start([notes], { refresh: CALM });
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await notes.stop();
});

const refresh = () => daemon.send('POST', '/api/v1/scenarios/notes/refresh');
const told = (page) => page.locator('#latency-told').innerText();
/** How many answers the part of the page knows that is fetched again. */
const known = (page) => page.locator('#latencies').evaluate((one) => one.dataset.at.split(',').length);

test('it is drawn once there is something to draw, and follows', async () => {
  const page = await open(browser, `${daemon.url}/dashboard/scenarios/notes`);
  assert.ok(await page.locator('#latency').isHidden(), 'one answer is no line');
  for (let n = 0; n < 8; n += 1) await refresh();
  await page.locator('#latency canvas').waitFor();
  const all = await until('all are drawn', async () => {
    const number = await known(page);
    return number >= 2 && (await told(page)) === `All ${number} answers are shown.` && number;
  });
  await refresh();
  await until('it follows', async () => /^All \d+ /.test(await told(page)) && Number((await told(page)).match(/\d+/)[0]) > all);
  assert.deepEqual(await barriers(page), []);
  await shoot(page, 'scenario-latency');
  await close(page);
});

test('the pointer tells single values, and a closer look lasts', async () => {
  // Answers some seconds apart, or all would be in one place.
  const page = await open(browser, `${daemon.url}/dashboard/scenarios/notes`, { width: 1000 });
  await until('some seconds are known', async () => {
    await refresh();
    return page.locator('#latencies').evaluate((one) => {
      const at = one.dataset.at.split(',').map(Number);
      return at.at(-1) - at[0] >= 4;
    });
  });
  const over = page.locator('#latency .u-over');
  const { width, height } = await over.boundingBox();
  await over.hover({ position: { x: width - 3, y: height / 2 } });
  await until('a value is told', async () => /Took\s*:?\s*\d+ ms/.test(await page.locator('#latency .u-legend').innerText()));
  const box = await over.boundingBox();
  await page.mouse.move(box.x + width * 0.6, box.y + height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + width - 2, box.y + height / 2, { steps: 5 });
  await page.mouse.up();
  await until('a part is shown', async () => /^\d+ of the latest \d+ answers are shown\.$/.test(await told(page)));
  const before = await known(page);
  await refresh();
  await until('another answer came', async () => (await known(page)) > before || before === 60);
  assert.match(await told(page), /^\d+ of the latest/, 'it is looked at closely still');
  await over.dblclick();
  await until('all is shown again', async () => /^All \d+/.test(await told(page)));
  await close(page);
});

test('without scripts the line in the table stays', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${daemon.url}/dashboard/scenarios/notes`);
  assert.ok(await page.locator('dd svg.spark').isVisible());
  assert.ok(await page.locator('#latency').isHidden());
  await context.close();
});
