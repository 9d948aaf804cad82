// Logging in for a scenario on its page: to its authorization server, back to the daemon, and out again.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { barriers, launch, linked, open, shoot, sticking } from './support/browser.mjs';
import { Daemon } from './support/daemon.mjs';
import { Guarded } from './support/guarded.mjs';
import { tool } from './support/scenario.mjs';
import { until } from './support/until.mjs';

const PAGE = '/dashboard/scenarios/tickets';

let browser, daemon, tickets;

before(async () => {
  browser = await launch();
  tickets = await new Guarded('tickets', [tool('find_ticket', 'Finds a ticket')]).start();
  daemon = await Daemon.start([tickets]);
});

after(async () => {
  await browser.close();
  await daemon.stop();
  await tickets.stop();
});

/** Closes it. That it went to the authorization server, and what was refused there, is what was wanted. */
async function close(page) {
  await page.context().close();
  const wrong = page.wrong.filter((one) => !one.startsWith(`another host: ${tickets.origin}/`));
  assert.deepEqual(wrong, []);
}

/** Presses "Log in", and waits for the page of the authorization server. */
async function begin(page) {
  await page.locator('#login-tickets').click();
  await page.waitForURL(`${tickets.origin}/authorize?**`);
  const asked = new URL(page.url()).searchParams;
  assert.equal(asked.get('redirect_uri'), `${daemon.url}/login/callback`);
  assert.equal(asked.get('code_challenge_method'), 'S256');
  assert.equal(asked.get('resource'), tickets.origin);
  assert.equal(asked.get('scope'), 'read');
}

test('a refusal is shown, and the scenario goes on wanting a login', async () => {
  const page = await open(browser, daemon.url + PAGE);
  await page.locator('[data-login=logged-out]').waitFor();
  assert.equal(await page.locator('#logout-tickets').count(), 0);
  await begin(page);
  await page.locator('#refuse').click();
  await page.getByText('refused the login: access_denied').waitFor();
  assert.match(page.url(), /\/login\/callback\?/);
  assert.equal(await daemon.stateOf('tickets'), 'needs-authorization');
  assert.equal(tickets.tokens.length, 0);
  await close(page);
});

test('an approval lists its tools, and logging out withdraws the token', async () => {
  const page = await open(browser, daemon.url + PAGE);
  await begin(page);
  await page.locator('#approve').click();
  await page.getByRole('heading', { name: 'Logged in' }).waitFor();
  await shoot(page, 'logged-in');
  assert.deepEqual([await sticking(page), await barriers(page)], [[], []]);
  await until('its tool is listed', async () => (await daemon.listed()).includes('find_ticket'));
  assert.equal(tickets.tokens.length, 1);
  assert.equal(tickets.tokens[0].get('code'), 'code-1');

  await page.getByRole('link', { name: 'Its page' }).click();
  await linked(page);
  await page.locator('[data-login=logged-in]').waitFor();
  assert.equal(await daemon.stateOf('tickets'), 'live');
  await shoot(page, 'scenario-logged-in');
  assert.deepEqual([await sticking(page), await barriers(page)], [[], []]);

  // The address that the browser came back with is used up.
  await page.goBack();
  await page.reload();
  await page.getByText('no such login is under way').waitFor();
  await page.goto(daemon.url + PAGE);
  await linked(page);

  const asked = [];
  page.once('dialog', (dialog) => (asked.push(dialog.message()), dialog.accept()));
  await page.locator('#logout-tickets').click();
  await page.locator('[data-login=logged-out]').waitFor();
  assert.match(asked[0], /^Log out of tickets\?/);
  await until('it wants a login again', async () => (await daemon.stateOf('tickets')) === 'needs-authorization');
  assert.deepEqual(tickets.revoked, ['again', 'token-1']);
  assert.equal(await page.locator('#logout-tickets').count(), 0);
  await close(page);
});
