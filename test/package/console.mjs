// The console of an application, as a browser and a script ask for it.
import assert from 'node:assert/strict';
import { Running, withoutBusyMachine } from './running.mjs';

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'";
const FILES = { '': 'text/html', 'console.js': 'text/javascript', 'console.css': 'text/css' };
const USER = { 'x-user': 'ann' };

/** The page, its parts and a view: who may see them, what they are, and that they are not sent twice. */
export async function checkConsole(url) {
  const stranger = await fetch(`${url}/`);
  assert.equal(stranger.status, 401);
  for (const [file, type] of Object.entries(FILES)) {
    await checkTwice(`${url}/${file}`, { type, control: 'no-cache' });
  }
  const rows = await checkTwice(`${url}/api/locks`, { type: 'application/json', control: 'no-store' });
  assert.equal(JSON.parse(rows).schemaVersion, 1);
}

async function checkTwice(address, { type, control }) {
  const response = await fetch(address, { headers: USER });
  const { status, headers } = response;
  const sent = ['content-type', 'cache-control', 'content-security-policy'].map((name) => headers.get(name));
  assert.deepEqual([address, status, ...sent], [address, 200, `${type}; charset=utf-8`, control, CSP]);
  const again = await fetch(address, { headers: { ...USER, 'if-none-match': headers.get('etag') } });
  assert.deepEqual([address, again.status, await again.text()], [address, 304, '']);
  const text = await response.text();
  assert.ok(text.length > 0, address);
  return text;
}

/** @returns {Promise<object>} what the console answers to an action */
export async function act(url, action, body, status = 200) {
  const response = await fetch(`${url}/api/${action}`, {
    method: 'POST',
    headers: { ...USER, 'content-type': 'application/json', 'x-lock-console': '1' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text);
}

/** Starts `consoles.ts`, which has been compiled: on Express and on Fastify. */
export async function checkConsoles(program, folder) {
  const consoles = new Running(process.execPath, [program], { cwd: folder });
  try {
    await consoles.prints(/^fastify: \S+$/m);
    const printed = withoutBusyMachine(consoles.output);
    const [, ...addresses] = /^express: (\S+)\nfastify: (\S+)\n$/.exec(printed) ?? assert.fail(consoles.output);
    for (const url of addresses) {
      await checkConsole(url);
      await checkRelease(url);
      const second = url.replace('ops/locks', 'view');
      await checkConsole(second);
      assert.equal((await act(second, 'release', {}, 403)).error.code, 'NOT_ALLOWED');
    }
    await consoles.interrupt();
  } finally {
    consoles.kill();
  }
}

async function checkRelease(url) {
  const listed = await fetch(`${url}/api/locks`, { headers: USER });
  const [{ resource, fencingToken }] = (await listed.json()).rows;
  const body = { resource, fencingToken, reason: 'a test' };
  const forged = await fetch(`${url}/api/release`, { method: 'POST', headers: USER, body: JSON.stringify(body) });
  assert.equal(forged.status, 415);
  const released = await act(url, 'release', body);
  assert.deepEqual([released.resource, released.by, released.reason], ['order:7', 'ann', 'a test']);
  assert.equal((await act(url, 'release', body, 404)).error.code, 'GONE');
}
