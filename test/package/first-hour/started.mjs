import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { act, checkConsole } from '../console.mjs';
import { NEST } from './generate.mjs';
import { Running, withoutBusyMachine } from '../running.mjs';

/** On a busy machine, it takes many times as long as alone. */
const SOON_MS = 60_000;

/** `nest start`, requests, Ctrl-C. */
export function checkStarted(application, builder) {
  return checkServed([NEST, 'start', '--builder', builder], application);
}

/** @param {string[]} command for Node, which starts the application */
export async function checkServed(command, { folder, env }) {
  const port = await findFreePort();
  const application = new Running(process.execPath, command, {
    cwd: folder,
    env: { ...env, PORT: String(port), NO_COLOR: '1' },
  });
  try {
    await application.prints(/Nest application successfully started/);
    const root = `http://127.0.0.1:${port}`;
    await listens(`${root}/orders`);
    await checkRequests(`${root}/orders`);
    await checkJobs(`${root}/ops/locks`);
    await application.interrupt();
    assert.doesNotMatch(withoutBusyMachine(application.output), /ERROR|WARN/, application.output);
  } finally {
    application.kill();
  }
}

/** In its console. */
async function checkJobs(url) {
  await checkConsole(url);
  const { by, state } = await act(url, 'runJob', { job: 'tick', reason: 'a test' });
  assert.match(`${state} for ${by}`, /^(?:taken|ok) for ann$/);
  assert.equal((await act(url, 'release', {}, 403)).error.code, 'NOT_ALLOWED');
}

/** Nest prints that it has started before it listens. */
async function listens(url) {
  const deadline = Date.now() + SOON_MS;
  while (
    !(await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    assert.ok(Date.now() < deadline, `nothing listens at ${url}`);
    await sleep(20);
  }
}

async function checkRequests(url) {
  const post = (path) => fetch(`${url}/${path}`, { method: 'POST', signal: AbortSignal.timeout(SOON_MS) });
  const paid = await Promise.all([post('7/pay'), post('7/pay'), post('7/pay')]);
  assert.deepEqual(await Promise.all(paid.map((response) => response.text())), Array(3).fill('paid 7'));

  const packing = [post('8/pack'), post('8/pack')];
  // The other one works until it is stopped.
  const refused = await Promise.race(packing);
  assert.equal(refused.status, 423);
  await post('packed');
  const statuses = (await Promise.all(packing)).map(({ status }) => status);
  assert.deepEqual(new Set(statuses), new Set([201, 423]));
  assert.match(refused.headers.get('retry-after'), /^[1-5]$/);
  const { message, ...answer } = await refused.json();
  assert.deepEqual(answer, { statusCode: 423, error: 'Locked', code: 'LOCK_BUSY' });
  assert.equal(message, 'Another request is working on this. Try again later.');

  const deadline = Date.now() + SOON_MS;
  for (;;) {
    const { mostPayingAtOnce, ticks, led, polls } = await (await fetch(url)).json();
    assert.equal(mostPayingAtOnce, 1);
    assert.equal(new Set(ticks).size, ticks.length);
    if (ticks.length >= 2 && led > 0 && polls > 0) return;
    assert.ok(
      Date.now() < deadline,
      `in ${SOON_MS} ms: ${ticks.length} ticks, led ${led} times, polled ${polls} times`,
    );
    await sleep(50);
  }
}
