import { readFileSync } from 'node:fs';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { settle } from '../../support/world/fake-clock.js';

describe('conflicting orders of nested locks', () => {
  let world: LockWorld;
  let a: Instance;
  let warnings: string[];

  beforeEach(() => {
    world = new LockWorld();
    warnings = [];
    a = world.instance('a', { warn: (line) => warnings.push(line) });
  });

  type Wish = string | readonly [name: string, options: LockOptions];

  /** Takes them one inside the other. */
  const nested = async (...wishes: readonly Wish[]): Promise<void> => {
    const [first, ...rest] = wishes;
    if (first === undefined) return;
    const [name, options] = typeof first === 'string' ? [first, {}] : first;
    await a.locks.using(name, options, async () => {
      await settle();
      await nested(...rest);
    });
  };
  const cycles = () =>
    eventsOf(a, 'lockOrder').map(({ edges }) => edges.map(({ held, wanted }) => `${held} > ${wanted}`).join(', '));
  const edges = () => a.locks.lockOrder().map(({ held, wanted }) => `${held} > ${wanted}`);

  it('are reported as soon as two of them make a cycle, though no call has waited', async () => {
    await nested('order:7', 'stock:1');
    await nested('order:8', 'stock:2');
    expect(cycles()).toEqual([]);
    await nested('stock:3', 'order:9');
    expect(eventsOf(a, 'lockOrder')).toEqual([
      {
        type: 'lockOrder',
        service: 'default',
        edges: [
          {
            held: 'order',
            heldResource: 'order:7',
            heldMode: 'exclusive',
            heldAt: expect.stringContaining('lock-order.test.ts'),
            wanted: 'stock',
            wantedResource: 'stock:1',
            wantedMode: 'exclusive',
            wantedAt: expect.stringContaining('lock-order.test.ts'),
          },
          expect.objectContaining({
            held: 'stock',
            heldResource: 'stock:3',
            wanted: 'order',
            wantedResource: 'order:9',
          }),
        ],
      },
    ]);
  });

  const lineAt = (site: string): string | undefined => {
    const [, file, line] = /([^(]+):(\d+):\d+\)?$/.exec(site)!;
    return readFileSync(file!, 'utf8').split('\n')[Number(line) - 1];
  };

  it('have the lines of the application that took one lock and wanted the other', async () => {
    const outer = async () => {
      await a.locks.using('order:1', {}, () => inner());
    };
    const inner = async () => {
      await settle();
      await deeper();
    };
    const deeper = () => a.locks.using('stock:1', {}, () => {});
    await outer();
    const [edge] = a.locks.lockOrder();
    expect(lineAt(edge!.heldAt!)).toContain("locks.using('order:1'");
    expect(lineAt(edge!.wantedAt!)).toContain("locks.using('stock:1'");
  });

  describe('inside of one group', () => {
    it('may go up or down, but not both', async () => {
      await nested('account:1', 'account:2');
      await nested('account:3', 'account:4');
      expect(cycles()).toEqual([]);
      await nested('account:9', 'account:4');
      expect(cycles()).toEqual(['account > account, account > account']);
    });

    it('are ignored if one call takes several', async () => {
      await a.locks.using(['account:2', 'account:1'], {}, () => {});
      await nested('x', 'y');
      await a.locks.using(['account:2', 'account:1'], {}, () => {});
      await a.locks.using(['account:4', 'account:3'], {}, () => {});
      expect(cycles()).toEqual([]);
    });
  });

  it('include those of a call for several resources, from the first nested call on', async () => {
    await a.locks.using(['order:1', 'stock:1'], {}, () => {});
    expect(edges()).toEqual([]);
    await nested('stock:1', 'order:1');
    expect(cycles()).toEqual([]);
    await a.locks.using(['order:1', 'stock:1'], {}, () => {});
    expect(cycles()).toEqual(['stock > order, order > stock']);
  });

  const READ = { mode: 'read' } as const;
  const WRITE = { mode: 'write' } as const;

  it.each([
    ['only read', [READ, READ], [READ, READ], 0],
    ['only read one of them', [WRITE, READ], [READ, WRITE], 0],
    ['read in one order and write in the other', [READ, READ], [WRITE, WRITE], 1],
    ['write one and read the other', [WRITE, READ], [WRITE, READ], 1],
  ] as const)('make a cycle where calls can wait for each other: they %s', async (_name, there, back, expected) => {
    await nested(['x:1', there[0]], ['y:1', there[1]]);
    await nested(['y:1', back[0]], ['x:1', back[1]]);
    expect(cycles()).toHaveLength(expected);
  });

  it('exclude semaphores, calls that do not wait, re-entries, and names without a group', async () => {
    const permit = (work: () => Promise<unknown>) => a.locks.semaphore('s', { permits: 2 }).using({}, work);
    await permit(() => nested('x'));
    await nested('w', ['x', { waitMs: 0 }]);
    await a.locks.using('x', {}, () => permit(async () => {}));
    await nested(['r', { mode: 'reentrant' }], ['r', { mode: 'reentrant' }]);
    await nested('1234-5678', 'x');
    await nested('x', '1234-5678');
    expect(a.locks.lockOrder()).toEqual([]);
  });

  it('are limited to 1,000, with one warning', async () => {
    await a.locks.using('outer', {}, async () => {
      for (let i = 0; i < 1_005; i++) await a.locks.using(`g${i}:1`, {}, () => {});
    });
    expect(a.locks.lockOrder()).toHaveLength(1_000);
    expect(warnings).toEqual([expect.stringContaining('in 1000 orders of groups')]);
  });

  it.each([0, undefined, 'frozen'])('have some lines, or none, if the limit of stacks is %s', async (limit) => {
    const { stackTraceLimit } = Error;
    if (limit === 'frozen') Object.defineProperty(Error, 'stackTraceLimit', { writable: false });
    else Error.stackTraceLimit = limit as number;
    try {
      await nested('x', 'y');
      expect(Error.stackTraceLimit).toBe(limit === 'frozen' ? stackTraceLimit : limit);
    } finally {
      Object.defineProperty(Error, 'stackTraceLimit', { writable: true, value: stackTraceLimit });
    }
    expect(edges()).toEqual(['x > y']);
  });
});
