// Operations of one process, as tasks/operation.mjs takes them.
import { AsyncResource } from 'node:async_hooks';

const NOTHING = async () => undefined;
const REENTRANT = { mode: 'reentrant' };

/** Two operations: to acquire, and to release what was acquired. */
function pairOf(what, acquire, prepare, end) {
  return {
    [`${what}: acquire`]: {
      prepare,
      run: (client, kept) => acquire(client, kept),
      async end(client, kept, lease) {
        await lease.release();
        await end?.(client, kept);
      },
    },
    [`${what}: release`]: {
      async prepare(client, kept) {
        await prepare?.(client, kept);
        kept.lease = await acquire(client, kept);
      },
      run: (client, { lease }) => lease.release(),
      end,
    },
  };
}

const several = (count) =>
  pairOf(`${count} resources`, ({ locks }, { resource }) =>
    locks.acquire(Array.from({ length: count }, (_, index) => `${resource}:${index}`)),
  );

/** Within the async context of a call that holds the lock, for as long as `leave` was not called. */
async function enter({ locks }, kept) {
  const entered = deferred();
  const left = deferred();
  const held = locks.using(kept.resource, REENTRANT, () => {
    entered.resolve(AsyncResource.bind((call) => call()));
    return left.promise;
  });
  kept.inside = await entered.promise;
  kept.leave = () => {
    left.resolve();
    return held;
  };
}

function deferred() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}

const withLease = (run) => ({
  async prepare({ locks }, kept) {
    kept.lease = await locks.acquire(kept.resource);
  },
  run: (client, { lease }) => run(lease),
  end: (client, { lease }) => lease.release(),
});

export const ofALease = {
  ...pairOf('a lock', ({ locks }, { resource }) => locks.acquire(resource)),
  '`using()`, with its release': { run: ({ locks }, { resource }) => locks.using(resource, NOTHING) },
  'the same with `backgroundRelease`': {
    run: ({ locks }, { resource }) => locks.using(resource, { backgroundRelease: true }, NOTHING),
  },
  ...pairOf('a reader', ({ locks }, { resource }) => locks.acquire(resource, { mode: 'read' })),
  ...pairOf('a permit of a semaphore', ({ locks }, { resource }) =>
    locks.semaphore(resource, { permits: 3 }).acquire(),
  ),
  ...pairOf(
    're-entry',
    ({ locks }, { resource, inside }) => inside(() => locks.acquire(resource, REENTRANT)),
    enter,
    (client, { leave }) => leave(),
  ),
  ...several(2),
  ...several(5),
  '`extend()`': withLease((lease) => lease.extend()),
  '`verify()`': withLease((lease) => lease.verify()),
  '`transfer()`': {
    async prepare({ locks }, kept) {
      kept.lease = await locks.acquire(kept.resource);
    },
    run: (client, { lease }) => lease.transfer(),
    end: async ({ locks }, kept, text) => (await locks.adopt(text)).release(),
  },
  '`adopt()`': {
    async prepare({ locks }, kept) {
      kept.text = await (await locks.acquire(kept.resource)).transfer();
    },
    run: ({ locks }, { text }) => locks.adopt(text),
    end: (client, kept, lease) => lease.release(),
  },
};
