// @ts-check
import { say, seconds } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

const MAILS = 20;
const SENT_BEFORE_THE_KILL = 5;
/** The lease of the leadership, see mailer.service.ts. */
const LEASE_MS = 2_000;
/** For a machine that is busy with other things. */
const SLACK_MS = 4_000;

/** @typedef {import('../../src/mails/post-office.js').Arrival} Arrival */
/** @typedef {{ waiting: object[], arrivals: Arrival[], delivered: string[] }} Box */

/**
 * Kills the instance that sends the outbox while it is sending.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function mailerScene(fleet) {
  await write(fleet, 'mails-without-leader');
  await Promise.all(fleet.running.map((shop) => shop.post('/mailer/without-leader')));
  const leaderless = await boxOf(fleet, 'mails-without-leader');
  say(`without a leader: ${leaderless.arrivals.length} sent for ${MAILS}`);

  const leader = await waitUntil('one instance leads', () => theLeader(fleet));
  await write(fleet, 'mails');
  await waitUntil(`${leader.name} has sent some`, async () => {
    return (await boxOf(fleet, 'mails')).arrivals.length >= SENT_BEFORE_THE_KILL;
  });
  await leader.kill();
  const killedAt = performance.now();
  const sent = (await boxOf(fleet, 'mails')).arrivals.length;
  say(`${leader.name} (pid ${leader.pid}), which leads, is killed after ${sent} of ${MAILS} mails`);
  const next = await waitUntil('another instance leads', () => theLeader(fleet));
  const afterMs = performance.now() - killedAt;
  say(`${next.name} leads, ${seconds(afterMs)} later`);
  const box = await waitUntil('the outbox is empty', async () => {
    const found = await boxOf(fleet, 'mails');
    return found.waiting.length === 0 && found;
  });
  await fleet.replace(leader);
  await waitUntil('one instance leads', () => theLeader(fleet));
  say(`${next.name} has sent the rest, ${leader.name} is back, and one leads`);

  const twice = box.arrivals.length - box.delivered.length;
  // A mail may be sent and not ticked off when its leader ends; the post office drops it by its id. The kill is one
  // change. An instance that is blocked for longer than its lease is another one, and may finish its current mail.
  const changes = Math.max(1, new Set(box.arrivals.map(({ token }) => token)).size - 1);
  return [
    {
      what: 'Mails sent again, without a leader',
      measured: `${leaderless.arrivals.length - leaderless.delivered.length} for ${MAILS} mails`,
      promised: 'some',
    },
    {
      what: 'Mails sent again, leader killed',
      measured: `${twice} for ${MAILS} mails, ${MAILS - box.delivered.length} lost`,
      promised: '<= 1 a new leader, 0 lost',
      isKept: twice <= changes && box.delivered.length === MAILS && late(box.arrivals) < changes,
    },
    {
      what: `Leader after ${leader.name}, which was killed`,
      measured: `${next.name} after ${seconds(afterMs)}`,
      promised: `a lease (${seconds(LEASE_MS)}) + ${seconds(SLACK_MS)}`,
      isKept: next !== leader && afterMs <= LEASE_MS + SLACK_MS,
    },
  ];
}

/**
 * The instance that takes itself for the leader, where exactly one does.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 */
export async function theLeader(fleet) {
  const answers = await Promise.all(fleet.running.map(async (shop) => ({ shop, is: await shop.get('/mailer') })));
  const leaders = answers.filter(({ is }) => is.body.leads);
  return leaders.length === 1 ? leaders[0]?.shop : undefined;
}

/** Counts mails from an older leader after one from a newer leader: fencing tokens grow from term to term. */
function late(/** @type {Arrival[]} */ arrivals) {
  let newest = 0;
  return arrivals.filter(({ token }) => token < (newest = Math.max(newest, token))).length;
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} box */
async function write(fleet, box) {
  const mails = Array.from({ length: MAILS }, (_, i) => ({ id: `${box}-${i}`, to: `customer-${i}` }));
  await Promise.all(mails.map((mail, i) => fleet.byTurns(i).post(`/boxes/${box}`, mail)));
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} box @returns {Promise<Box>} */
async function boxOf(fleet, box) {
  return (await fleet.other().get(`/boxes/${box}`)).body;
}
