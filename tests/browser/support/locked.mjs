// A store that cannot be written to, for a while.
import { spawn } from 'node:child_process';

import { until } from './until.mjs';

/** Another program that has the store to itself, as a backup may. */
export async function locked(daemon, during) {
  const lock = 'import sqlite3, sys\nstore = sqlite3.connect(sys.argv[1], isolation_level=None)\nstore.execute("BEGIN EXCLUSIVE")\nprint("locked", flush=True)\nsys.stdin.read()';
  const other = spawn('python3', ['-c', lock, daemon.state], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((done) => other.once('exit', done));
  let out = '';
  other.stdout.on('data', (data) => (out += data));
  await until('the store is locked', () => out.includes('locked'));
  try {
    await during();
  } finally {
    other.stdin.end();
    await ended;
  }
}
