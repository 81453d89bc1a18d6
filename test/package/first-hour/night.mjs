// The log and the errors when a process dies, when Redis is unreachable, and when the event loop is blocked.
import assert from 'node:assert/strict';
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { Running, withoutBusyMachine } from '../running.mjs';

/** Causes of lost leases in an outage. On a busy machine, the event loop may be blocked as well. */
const LOST =
  /The lease of "job:\d+" is no longer held: (Redis confirmed no renewal for .*leaseMs \(4000\)|.*because the event loop was blocked for at least [\d.]+ m?s\.)/;

/** The program has been compiled with the application. @returns {Promise<string>} all that was printed */
export async function checkNight(application) {
  const printed = await Promise.all([afterKill(application), duringOutage(application), afterStandstill(application)]);
  return printed.join('\n');
}

/** Another process waits more than five seconds for a lock whose holder was killed, and times out. */
async function afterKill(application) {
  const holder = startScene(application, 'holds', { INSTANCE_ID: 'api-3' });
  await holder.prints(/^holds$/m);
  holder.kill();
  const waiter = startScene(application, 'waits');
  await waiter.prints(
    /"order:7" is held by api-3 for [\d.]+ s; waited (?:[6-9]|\d\d)(?:\.\d)? s \(1st in line(?:, asked \d+ times)?\)\. Raise waitMs/,
  );
  assert.match(waiter.output, /WARN.*Waiting for "order:7": held by api-3, \d+ s left\. See docs\//, waiter.output);
  assert.match(waiter.output, /LOG.*Campaigns for 2 leaderships, and leads all of them: "nightly", "mail"/);
  await waiter.ends();
  return waiter.output;
}

/** Twenty lost leases: a line for the start of the outage, a line for the losses, and a line for its end. */
async function duringOutage(application) {
  const redis = await startRedisServer();
  try {
    const holder = startScene(application, 'outage', { REDIS_URL: redis.url });
    await holder.prints(/^holds$/m);
    await redis.kill();
    await holder.prints(/^lost$/m);
    await redis.start();
    await holder.ends();
    const lines = withoutBusyMachine(holder.output).split('\n');
    const warnings = lines.filter((line) => /WARN|ERROR/.test(line));
    // A line for each reason: the connection breaks once, and is refused from then on.
    const renewals = warnings.filter((line) => line.includes('Redis could not renew'));
    const [lost, over, ...more] = warnings.filter((line) => !renewals.includes(line));
    assert.ok(renewals.length >= 1 && renewals.length <= 4 && more.length === 0, holder.output);
    assert.match(renewals[0], /Redis could not renew "job:\d+": .*It is retried until the lease ends\. See docs\//);
    assert.match(lost, LOST);
    assert.match(
      over,
      /Redis answers again after .* During the outage, \d+ renewals failed, and 20 leases were lost\./,
    );
    return holder.output;
  } finally {
    await redis.stop();
  }
}

async function afterStandstill(application) {
  const holder = startScene(application, 'standsStill');
  await holder.ends();
  assert.match(holder.output, /the event loop was blocked for at least \d(\.\d)? s\. .*raise leaseMs \(1000\)/);
  return holder.output;
}

function startScene({ folder, env }, scene, special = {}) {
  // A killed holder leaves a lock behind, which must not block the other steps.
  const KEY_PREFIX = `${env.KEY_PREFIX}-night`;
  const options = { cwd: folder, env: { ...env, KEY_PREFIX, ...special, NO_COLOR: '1' } };
  return new Running(process.execPath, ['dist/night.js', scene], options);
}
