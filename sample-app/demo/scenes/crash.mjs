// @ts-check
import { say, seconds } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

/** The lease of the report's job, see nightly-report.service.ts. */
const LEASE_MS = 2_000;
/** For a machine that is busy with other things. */
const SLACK_MS = 4_000;
const ATTEMPTS = 5;

/** @typedef {import('nestjs-redis-lock/schedule').JobRun} JobRun */

/**
 * An instance is killed while it writes the report.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<{ findings: import('../screen.mjs').Finding[], killed: string }>} with the name of the instance
 */
export async function crashScene(fleet) {
  for (let attempt = 1; ; attempt++) {
    const { body: stale } = await fleet.other().get('/report');
    const begun = await waitUntil('a report that is being written', async () => {
      const { body: report } = await fleet.other().get('/report');
      return report.pages <= 2 && !report.finished && report.tick !== stale.tick && report;
    });
    const writer = fleet.named(begun.instance);
    await writer?.kill();
    const killedAt = performance.now();
    const { body: left } = await fleet.other().get('/report');
    // It was faster than the kill, so no instance has to rerun it.
    if (writer === undefined || left.finished || left.tick !== begun.tick) {
      if (attempt === ATTEMPTS) throw new Error('The report was always finished before its writer could be killed');
      if (writer) await fleet.replace(writer);
      continue;
    }
    say(`${writer.name} (pid ${writer.pid}) is killed after page ${left.pages} of 5`);
    const heir = await waitUntil('another instance takes the report over', async () => {
      const [newest] = await runsOf(fleet, begun.tick);
      return newest && nameOf(newest) !== writer.name && nameOf(newest);
    });
    const afterMs = performance.now() - killedAt;
    say(`${heir} begins the same report again, ${seconds(afterMs)} later`);
    const finished = await waitUntil('the report is finished', async () => {
      return (await runsOf(fleet, begun.tick)).find(({ outcome }) => outcome === 'ok');
    });
    say(`${nameOf(finished)} has finished it`);
    await fleet.replace(writer);
    say(`${writer.name} is back`);
    const finding = {
      what: `Report of ${writer.name}, which was killed`,
      measured: `${heir} took over after ${seconds(afterMs)}`,
      promised: `a lease (${seconds(LEASE_MS)}) + ${seconds(SLACK_MS)}`,
      isKept: afterMs <= LEASE_MS + SLACK_MS,
    };
    return { findings: [finding], killed: writer.name };
  }
}

/**
 * Returns the fleet's runs for a tick, newest first.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @param {string} tick
 * @returns {Promise<JobRun[]>}
 */
async function runsOf(fleet, tick) {
  const { body } = await fleet.other().operate('GET', '/jobs/nightly-report/history?limit=1000');
  return body.filter((/** @type {JobRun} */ run) => run.tick === tick);
}

/** Its instance has the id of the process behind the name. @param {JobRun} run */
function nameOf({ instanceId: instance }) {
  return instance.split(':')[0] ?? instance;
}
