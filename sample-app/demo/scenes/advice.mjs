// @ts-check
import { setTimeout as sleep } from 'node:timers/promises';
import { say } from '../screen.mjs';

const MESSAGES = 9;
/** Of a user who changes his mind while the model is at work. */
const CHANGES = 4;
const CHANGE_MS = 60;

/**
 * Messages of one chat arrive at once, on all instances.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function adviceScene(fleet) {
  const alone = await askAll(fleet, 'hasty/messages-without-lock');
  say(`without turns: ${alone.lost} of ${MESSAGES} messages are not in the chat`);
  const turns = await askAll(fleet, 'patient/messages');
  const told = turns.places.filter((places) => places.length > 0);
  say(
    `with turns:    ${turns.lost} of ${MESSAGES}; one was told its place in line: ${turns.places.at(-1)?.join(', then ')}`,
  );
  const newest = [];
  for (let i = 0; i <= CHANGES; i++) {
    newest.push(fleet.byTurns(i).post('/chats/fickle/newest-message', { text: `m-${i}` }));
    await sleep(CHANGE_MS);
  }
  const statuses = (await Promise.all(newest)).map(({ status }) => status);
  const aborted = statuses.filter((status) => status === 409).length;
  say(`newest only:   ${aborted} answers aborted, the last message got ${statuses.at(-1)}`);
  return [
    { what: 'Messages lost, without turns', measured: `${alone.lost} of ${MESSAGES}`, promised: 'some' },
    {
      what: 'Messages lost, one turn at a time',
      measured: `${turns.lost} of ${MESSAGES}, ${told.length} told a place in line`,
      promised: '0',
      isKept: turns.lost === 0 && told.length > 0 && told.every(arePlaces),
    },
    {
      what: 'Answers that a newer message aborted',
      measured: `${aborted} of ${CHANGES}, the newest answered`,
      promised: 'the newest answered',
      isKept: statuses.at(-1) === 201 && statuses.every((status) => status === 409 || status === 201),
    },
  ];
}

/** Instances take turns, so a place may grow. It is never larger than the line. */
function arePlaces(/** @type {number[]} */ places) {
  return places.every((place) => place >= 1 && place <= MESSAGES);
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} path */
async function askAll(fleet, path) {
  const requests = Array.from({ length: MESSAGES }, (_, i) =>
    fleet.byTurns(i).post(`/chats/${path}`, { text: `m-${i}` }),
  );
  const answers = await Promise.all(requests);
  const longest = Math.max(...answers.map(({ body }) => body.history?.length ?? 0));
  /** @type {number[][]} */
  const places = answers.map(({ body }) => body.places ?? []).sort((a, b) => a.length - b.length);
  return { lost: MESSAGES - longest, places };
}
