// What a holder does again and again.
const BATCH = 1_000;
const REENTRANT = { mode: 'reentrant', waitMs: 60_000 };

/** @param {{ ms: number }} args */
export async function run(world, { ms }) {
  const { locks } = await world.client();
  const nothing = async () => undefined;
  return locks.using('reentry', REENTRANT, async (lease) => {
    await asyncUs(() => locks.using('reentry', REENTRANT, nothing), ms / 4); // warm-up
    return {
      'first entry, and its release': { us: await asyncUs(() => locks.using('another', REENTRANT, nothing), ms) },
      're-entry at depth 2, and its release': {
        us: await asyncUs(() => locks.using('reentry', REENTRANT, nothing), ms),
      },
      '`locks.current()`': { us: syncUs(() => locks.current('reentry'), ms) },
      '`lease.isHeld()`': { us: syncUs(() => lease.isHeld(), ms) },
    };
  });
}

async function asyncUs(call, ms) {
  const startedAt = performance.now();
  let calls = 0;
  for (; performance.now() - startedAt < ms; calls++) await call();
  return ((performance.now() - startedAt) / calls) * 1000;
}

function syncUs(call, ms) {
  const startedAt = performance.now();
  let calls = 0;
  let truthy = 0; // used, so that the calls cannot be left out
  while (performance.now() - startedAt < ms) {
    for (let index = 0; index < BATCH; index++) if (call()) truthy++;
    calls += BATCH;
  }
  if (truthy !== calls) throw new Error('The lease was lost');
  return ((performance.now() - startedAt) / calls) * 1000;
}
