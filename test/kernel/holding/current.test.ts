import { readFileSync } from 'node:fs';
import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { LeaseLostError, LockNotHeldError } from '../../../lib/kernel/api/lease-errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { gate } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';

describe('current', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it('is the innermost lease of the async context, or the one of a resource', async () => {
    expect(a.locks.current()).toBeUndefined();
    await a.locks.using('outer', undefined, async (outer) => {
      await a.locks.using(['x', 'y'], undefined, async (inner) => {
        await settle();
        expect(a.locks.current()).toBe(inner);
        expect(a.locks.current('y')).toBe(inner);
        expect(a.locks.current('outer')).toBe(outer);
        expect(a.locks.current('other')).toBeUndefined();
      });
      expect(a.locks.current()).toBe(outer);
    });
    expect(a.locks.current()).toBeUndefined();
  });

  it('is undefined in another application of the process', async () => {
    const b = world.instance('b');
    await a.locks.using('stock', undefined, async () => {
      expect(b.locks.current()).toBeUndefined();
      expect(b.locks.current('stock')).toBeUndefined();
    });
  });

  it('is undefined for work that outlives the lease', async () => {
    let child!: Promise<unknown>;
    await a.locks.using('stock', undefined, async () => {
      child = new Promise((resolve) => setImmediate(() => setImmediate(resolve))).then(() => a.locks.current());
    });
    expect(await child).toBeUndefined();
  });

  it('still returns a lost lease, so that work can find out', async () => {
    await a.locks.using('stock', { watchdog: false, leaseMs: 100, onLost: 'ignore' }, async () => {
      await world.clock.advance(100);
      expect(a.locks.current()?.isHeld()).toBe(false);
      expect(a.locks.current()?.signal.aborted).toBe(true);
    });
  });

  it('is the outer lease for work that outlives the inner one', async () => {
    const over = gate();
    await a.locks.using('stock', { mode: 'reentrant' }, async (outer) => {
      let child!: Promise<unknown>;
      await a.locks.using('stock', { mode: 'reentrant' }, async () => {
        child = over.opened.then(() => a.locks.current('stock'));
      });
      over.open();
      expect(await child).toBe(outer);
    });
  });
});

describe('assertLocked', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  /** The error of the check; `undefined` if it passes. */
  function refusal(check: () => unknown): unknown {
    try {
      check();
      return undefined;
    } catch (error) {
      return error;
    }
  }

  describe('assertLocked', () => {
    const refused = (...names: string[]) => refusal(() => a.locks.assertLocked(names));

    it('passes below a lease of the resource, and sends nothing', async () => {
      await a.locks.using('outer', undefined, () =>
        a.locks.using(['x', 'y'], undefined, async () => {
          await settle();
          const sent = a.store.sent('verify').length + a.store.sent('inspect').length;
          expect([refused('x'), refused('y', 'outer'), refused('x', 'y')]).toEqual([undefined, undefined, undefined]);
          expect(a.store.sent('verify').length + a.store.sent('inspect').length).toBe(sent);
        }),
      );
    });

    it('refuses a context that holds nothing, or something else, and names it', async () => {
      const none = refused('stock');
      expect(none).toBeInstanceOf(LockNotHeldError);
      expect(none).toMatchObject({ code: 'LOCK_NOT_HELD', resource: 'stock', held: [] });
      expect((none as Error).message).toMatch(
        /^This async context does not hold "stock": it holds no lock\. Call this/,
      );
      await a.locks.using('outer', undefined, () =>
        a.locks.using(['x', 'y'], undefined, () => {
          expect(refused('x', 'stock')).toMatchObject({ resource: 'stock', held: ['x', 'y', 'outer'] });
          expect((refused('stock') as Error).message).toContain(
            'does not hold "stock": it holds "x", "y", "outer". Call',
          );
        }),
      );
    });

    it.each(['exclusive', 'reentrant', 'read', 'write'] as const)('passes for a lease of mode %s', async (mode) => {
      await a.locks.using('stock', { mode }, () => expect(refused('stock')).toBeUndefined());
    });

    it('refuses a lease of acquire, which belongs to no context', async () => {
      await using lease = await a.locks.acquire('stock');
      expect(lease.isHeld()).toBe(true);
      expect(refused('stock')).toMatchObject({ code: 'LOCK_NOT_HELD', held: [] });
    });

    it('refuses the lease of another application in the process', async () => {
      const b = world.instance('b');
      await b.locks.using('stock', undefined, () => expect(refused('stock')).toMatchObject({ code: 'LOCK_NOT_HELD' }));
    });

    it('refuses work that outlives its lease', async () => {
      const over = gate();
      let late!: Promise<unknown>;
      await a.locks.using('stock', undefined, async () => {
        late = over.opened.then(() => refused('stock'));
      });
      over.open();
      expect(await late).toBeInstanceOf(LockNotHeldError);
    });

    it('reports a lost lease, even of another part of a composite lease', async () => {
      await a.locks.using(['x', 'y'], { watchdog: false, leaseMs: 100, onLost: 'ignore' }, async () => {
        await world.clock.advance(100);
        expect(refused('y')).toBeInstanceOf(LeaseLostError);
      });
      await a.locks.using(['x', 'y'], { onLost: 'ignore' }, async () => {
        world.server.lose('x');
        await world.clock.advance(15_000);
        expect(refused('y')).toMatchObject({ code: 'LEASE_LOST', resource: 'x', reason: 'takenOver' });
      });
    });

    it.each([undefined, null, '', [], [undefined], 7, '\ud800'])('refuses %p as a name', async (name) => {
      await a.locks.using('stock', undefined, () => {
        expect(refusal(() => a.locks.assertLocked(name as string))).toBeInstanceOf(InvalidLockOptionsError);
      });
    });
  });

  describe('currentOrThrow', () => {
    it('refuses a context without one', async () => {
      const none = refusal(() => a.locks.currentOrThrow());
      expect(none).toMatchObject({ code: 'LOCK_NOT_HELD', resource: '', held: [] });
      expect((none as Error).message).toMatch(/^This async context does not hold any lock\. Call/);
      await a.locks.using('stock', undefined, () => {
        expect(refusal(() => a.locks.currentOrThrow('order'))).toMatchObject({ resource: 'order', held: ['stock'] });
      });
    });

    it('refuses a lost lease', async () => {
      await a.locks.using('stock', { watchdog: false, leaseMs: 100, onLost: 'ignore' }, async () => {
        await world.clock.advance(100);
        expect(refusal(() => a.locks.currentOrThrow())).toBeInstanceOf(LeaseLostError);
      });
    });
  });
});

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
            heldAt: expect.stringContaining('current.test.ts'),
            wanted: 'stock',
            wantedResource: 'stock:1',
            wantedMode: 'exclusive',
            wantedAt: expect.stringContaining('current.test.ts'),
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
    expect(warnings).toEqual([expect.stringContaining('in 1000 different orders of groups')]);
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
