import { labelWithGroup } from '../../../lib/kernel/api/holder.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { LockOwner, LockStore } from '../../../lib/kernel/store/lock-store.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { track } from '../../support/expect/tracked.js';

const PAY: LockOptions = { group: 'Orders.pay', waitMs: Infinity };
const REPORT: LockOptions = { group: 'Report.run', waitMs: Infinity };

describe('the module option labelGroups', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a', { labelGroups: true });
    b = world.instance('b', { labelGroups: true });
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);
  const shown = async () =>
    (await b.locks.inspect('stock')).holders.map(({ label, isHandedOn }) => label ?? { isHandedOn });

  it('names the group of a holder in another process, without a label of its own', async () => {
    b.locks.operators.contention();
    const report = await a.locks.acquire('stock', REPORT);
    const payment = track(b.locks.acquire('stock', PAY));
    await world.clock.advance(3_000);
    expect((await a.locks.inspect('stock')).waiters).toMatchObject([{ label: { group: 'Orders.pay' } }]);
    await report.release();
    await world.clock.advance(10);
    expect(payment.state).toBe('fulfilled');
    const { blockers } = b.locks.operators.contention();
    expect(blockers.map(({ text }) => text)).toEqual(['Orders.pay waited 3 s in 1 call for Report.run']);
  });

  it('omits the group if the label of the call leaves no room for it', () => {
    const label = JSON.stringify({ request: 'x'.repeat(240) });
    expect(labelWithGroup(label, 'Orders.pay')).toBe(label);
    expect(labelWithGroup(undefined, '\u{1f512}'.repeat(100))).toBeUndefined();
  });

  it('sends nothing for a handover within one group', async () => {
    const first = await a.locks.acquire('stock', PAY);
    const second = track(a.locks.acquire('stock', PAY));
    const before = verbs(a);
    await first.release();
    await world.clock.advance(1_000);
    expect(second.state).toBe('fulfilled');
    expect(verbs(a)).toEqual(before);
    expect(await shown()).toEqual([{ group: 'Orders.pay' }]);
    await second.value.release();
  });

  it('is off by default: commands have no label, and no argument for one', async () => {
    const c = world.instance('c');
    const [on, off] = [a, c].map(({ store }) => ownersAskedFor(store));
    for (const { locks } of [a, c]) await (await locks.acquire('stock', PAY)).release();
    expect(on).toMatchObject([{ label: '{"group":"Orders.pay"}' }]);
    expect(off).toHaveLength(1);
    expect(off![0]).not.toHaveProperty('label');
    expect(verbs(c)).toEqual(['acquire', 'release']);
  });
});

function ownersAskedFor(store: LockStore): LockOwner[] {
  const owners: LockOwner[] = [];
  const acquire = store.acquire.bind(store);
  store.acquire = (owner, ...rest) => {
    owners.push(owner);
    return acquire(owner, ...rest);
  };
  return owners;
}
