// @ts-check
import { mostAtOnce } from '../most-at-once.mjs';
import { say, seconds } from '../screen.mjs';

const WAVES = 4;
const READERS = 15;
/** Without the lock it goes wrong practically always; what does not is repeated. */
const UNLOCKED_ATTEMPTS = 5;

/** @typedef {import('../../src/catalogue/catalogue.service.js').Price} Price */

/**
 * Readers on all instances, while one of them prints edition after edition, page by page.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function catalogueScene(fleet) {
  let unlocked = await readWhileEdited(fleet, '/catalogue-without-lock');
  for (let again = 1; again < UNLOCKED_ATTEMPTS && unlocked.halfDone === 0; again++) {
    unlocked = await readWhileEdited(fleet, '/catalogue-without-lock');
  }
  say(`without the lock: ${describe(unlocked)}`);
  const locked = await readWhileEdited(fleet, '/catalogue');
  const atOnce = mostAtOnce((await fleet.other().get('/time-clock/catalogue')).body);
  say(`with the lock:    ${describe(locked)}; up to ${atOnce} readers at once`);
  return [
    {
      what: 'Half-done editions read without the lock',
      measured: `${unlocked.halfDone} of ${unlocked.reads}`,
      promised: 'some',
    },
    {
      what: 'Half-done editions read with the lock',
      measured: `${locked.halfDone} of ${locked.reads}`,
      promised: '0',
      isKept: locked.halfDone === 0 && locked.reads === WAVES * READERS && locked.areProofsRight,
    },
    { what: 'Readers at once, with the lock', measured: String(atOnce), promised: '> 1', isKept: atOnce > 1 },
  ];
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} path */
async function readWhileEdited(fleet, path) {
  const began = performance.now();
  let isRead = false;
  const editing = editUntil(fleet, () => isRead);
  /** @type {Price[][]} */
  const catalogues = [];
  try {
    for (let wave = 0; wave < WAVES; wave++) {
      const answers = await Promise.all(Array.from({ length: READERS }, (_, i) => fleet.byTurns(i).get(path)));
      catalogues.push(...answers.filter(({ status }) => status === 200).map(({ body }) => body));
    }
  } finally {
    isRead = true;
  }
  const proofs = await editing;
  return {
    reads: catalogues.length,
    halfDone: catalogues.filter(isHalfDone).length,
    editions: proofs.length,
    areProofsRight: proofs.every(({ cents, proof }) => !isHalfDone(proof) && proof[0]?.cents === cents),
    tookMs: performance.now() - began,
  };
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {() => boolean} isOver */
async function editUntil(fleet, isOver) {
  /** @type {{ cents: number, proof: Price[] }[]} */
  const proofs = [];
  for (let edit = 0; edit === 0 || !isOver(); edit++) {
    const cents = 100 + edit;
    const { body: proof } = await fleet.byTurns(edit).post('/catalogue/editions', { cents });
    proofs.push({ cents, proof });
  }
  return proofs;
}

/** Returns true if the pages are from several editions. */
export function isHalfDone(/** @type {Price[]} */ pages) {
  return new Set(pages.map(({ edition }) => edition)).size > 1;
}

/** @param {Awaited<ReturnType<typeof readWhileEdited>>} outcome */
function describe({ reads, halfDone, editions, tookMs }) {
  return `read ${reads} times during ${editions} editions (${seconds(tookMs)}), ${halfDone} times half of one`;
}
