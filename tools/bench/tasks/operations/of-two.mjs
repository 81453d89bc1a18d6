// What goes from one process to another. The first has it, the second waits for it: see tasks/operation.mjs.

export const ofTwo = {
  'a hand-over to another process': {
    async prepare({ locks }, kept) {
      kept.lease = await locks.acquire(kept.resource);
    },
    wait: ({ locks }, { resource }) => locks.acquire(resource, { waitMs: 20_000 }),
    run: (client, { lease }) => lease.release(),
    end: (client, kept, lease) => lease.release(),
  },
  'elected after another process resigned': {
    async prepare({ locks }, kept) {
      kept.leadership = locks.campaign(kept.resource);
      await kept.leadership.whenElected();
    },
    async wait({ locks }, kept) {
      kept.leadership = locks.campaign(kept.resource);
      await kept.leadership.whenElected();
    },
    run: (client, { leadership }) => leadership.resign(),
    end: (client, { leadership }) => leadership.resign(),
  },
};
