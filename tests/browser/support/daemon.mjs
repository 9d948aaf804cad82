// The real daemon, as a user runs it, in a home of its own. It hears nothing but what the test tells it.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { PATIENCE, until } from './until.mjs';

/** Asks often and gives up soon, so that a test is short. */
export const HASTY = { min_interval: '150ms', max_interval: '300ms', forced_gap: '1ms', backoff_base: '50ms', backoff_max: '200ms' };
/** Asks as rarely as by default: pages stay as they are. */
export const CALM = { forced_gap: '1ms', backoff_base: '30s' };

export class Daemon {
  static async start(scenarios, { refresh = HASTY, grace = '500ms', isolation = '0s', mdnsPort, settings = [], sections = [] } = {}) {
    const daemon = new Daemon();
    daemon.home = await mkdtemp(join(tmpdir(), 'callsheet-browser-'));
    daemon.state = join(daemon.home, 'state.db');
    // Announcements, where a test needs them, are heard on a port of its own and on loopback alone.
    const mdns = mdnsPort
      ? `enabled = true\nport = ${mdnsPort}\ninterfaces = ["loopback"]\ntrust = "none"`
      : 'enabled = false';
    const config = [
      'server.listen = "127.0.0.1:0"',
      'server.ready_timeout = "20s"',
      ...settings,
      ...scenarios.map(({ name, url }) => `[[scenarios]]\nname = "${name}"\nurl = "${url}"`),
      `[discovery.mdns]\n${mdns}`,
      '[discovery.vrooli]\nenabled = false',
      '[discovery.environment]\nenabled = false',
      `[refresh]\n${Object.entries(refresh).map(([key, value]) => `${key} = "${value}"`).join('\n')}`,
      `[health]\ngrace = "${grace}"\nisolation_max = "${isolation}"`,
      `[state]\npath = "${daemon.state}"`,
      ...sections,
    ];
    await writeFile(join(daemon.home, 'callsheet.toml'), config.join('\n'));
    await daemon.run();
    return daemon;
  }

  async run() {
    this.child = spawn(process.env.CALLSHEET_BINARY, ['serve'], {
      cwd: this.home,
      env: { HOME: this.home, XDG_CONFIG_HOME: join(this.home, '.config'), XDG_STATE_HOME: join(this.home, '.state') },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.log = '';
    this.child.stderr.on('data', (data) => (this.log += data));
    this.ended = new Promise((done) => this.child.once('exit', done));
    const begin = 'callsheet listens on ';
    this.url = await new Promise((found, failed) => {
      const late = setTimeout(() => failed(new Error(`the daemon did not start: ${this.log}`)), PATIENCE);
      createInterface(this.child.stdout).on('line', (line) => {
        if (!line.startsWith(begin)) return;
        clearTimeout(late);
        found(line.slice(begin.length));
      });
    });
    await until('the daemon is ready', async () => (await fetch(`${this.url}/readyz`)).ok);
  }

  async json(path) {
    const answer = await fetch(this.url + path);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  async send(method, path, body) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** The names in the published list. */
  async listed(query = '') {
    return (await this.json(`/api/v1/tools${query}`)).tools.map(({ name }) => name);
  }

  async stateOf(name) {
    const { scenarios } = await this.json('/api/v1/scenarios');
    return scenarios.find((scenario) => scenario.name === name)?.state;
  }

  async stop() {
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), PATIENCE);
    await this.ended;
    clearTimeout(late);
    await rm(this.home, { recursive: true });
  }
}
