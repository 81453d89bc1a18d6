import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, repliedWhen } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

/** Redis may execute a command after others that were sent later: it did not know the script, and it is sent once more. */
describe('commands that are executed late', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('a late attempt does not cut a lease that was extended since', async () => {
    const arrival = gate();
    a.store.next('acquire', executedWhen(arrival.opened));
    const acquiring = track(a.locks.acquire('stock', { leaseMs: 1_000, watchdog: false, attemptTimeoutMs: 100 }));
    await world.clock.advance(200); // the second attempt is granted
    const lease = acquiring.value;
    await lease.extend(60_000);
    arrival.open(); // the first one is executed: PEXPIRE 1000
    await world.clock.advance(2_000);
    const other = track(b.locks.acquire('stock', { waitMs: 10 }));
    await world.clock.advance(10);
    expect(lease.isHeld()).toBe(true);
    expect(other.state).toBe('rejected');
  });

  it('a late heartbeat does not cut it either', async () => {
    const holder = await b.locks.acquire('stock');
    const acquiring = track(a.locks.acquire('stock', { leaseMs: 3_000 }));
    await settle();
    const arrival = gate();
    a.store.next('acquire', executedWhen(arrival.opened));
    await world.clock.advance(1_300); // a heartbeat, on a connection that stalls
    await holder.release();
    await settle();
    await acquiring.value.extend(60_000); // renewed next in 20 s
    arrival.open();
    await world.clock.advance(4_000);
    const other = track(b.locks.acquire('stock', { waitMs: 10 }));
    await world.clock.advance(10);
    expect(acquiring.value.isHeld()).toBe(true);
    expect(other.state).toBe('rejected');
  });

  it('a late renewal does not cut it either', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 3_000 });
    const arrival = gate();
    a.store.next('renew', executedWhen(arrival.opened));
    await world.clock.advance(1_000); // the watchdog renews; Redis did not know the script, and it is sent anew
    await lease.extend(60_000); // confirmed; the renewal is forgotten: "executed before it, or never"
    arrival.open();
    await world.clock.advance(4_000);
    const other = track(b.locks.acquire('stock', { waitMs: 10 }));
    await world.clock.advance(10);
    expect(lease.isHeld()).toBe(true);
    expect(other.state).toBe('rejected');
  });

  it('a late grant that arrives together with the end of its withdrawal is returned', async () => {
    // In order on one connection: acquire (NOSCRIPT), release, EVAL acquire; the last two replies come in one packet.
    const late = gate();
    const packet = gate();
    a.store.next('acquire', async (execute) => {
      await late.opened;
      const reply = await execute();
      await packet.opened;
      return reply;
    });
    a.store.next('release', repliedWhen(packet.opened));
    const controller = new AbortController();
    track(a.locks.acquire('stock', { signal: controller.signal }));
    await settle();
    controller.abort(); // the release is executed, and finds nothing
    await settle();
    late.open(); // the acquire is executed: granted
    await settle();
    packet.open();
    await world.clock.advance(5_000);
    expect(a.store.sent('release')).toHaveLength(2);
    expect(world.server.isEmpty).toBe(true);
  });

  it('an attempt of a poller that is executed after the release is returned', async () => {
    const late = gate();
    a.store.next('acquire', executedWhen(late.opened));
    const retry = { next: () => 10 };
    const polling = track(a.locks.acquire('stock', { retry, attemptTimeoutMs: 100 }));
    await world.clock.advance(150); // the second attempt is granted
    await polling.value.release();
    late.open(); // and now the first one
    await world.clock.advance(5_000);
    expect(world.server.isEmpty).toBe(true);
  });
});
