import { LockWorld } from '../../../support/world/lock-world.js';
import { TracedWorld, useAsyncContexts } from '../../../support/world/traced-world.js';

useAsyncContexts();

/** Forgets values on request, in place of the garbage collector. */
class FakeRegistry<T> {
  static readonly forget: (() => void)[] = [];

  constructor(private readonly collected: (held: T) => void) {}

  register(_handle: object, held: T): void {
    FakeRegistry.forget.push(() => this.collected(held));
  }

  unregister(): void {}
}

describe('the span of a lease that has leaked', () => {
  const { FinalizationRegistry: real } = globalThis;

  beforeEach(() => void (globalThis.FinalizationRegistry = FakeRegistry as never));
  afterEach(() => void (globalThis.FinalizationRegistry = real));

  it('ends as an error when the leak is found, and its later release changes nothing', async () => {
    const world = new LockWorld();
    const traces = new TracedWorld();
    const { locks } = world.instance('shop-1', { telemetry: [traces.telemetry] });
    const lease = await locks.withOrigin(
      () => {},
      (origin) => locks.acquire('order:7', {}, origin),
    );
    await world.clock.advance(700);
    expect(traces.names).toEqual(['acquire order']);
    for (const forget of FakeRegistry.forget.splice(0)) forget();
    expect(traces.span('hold order')).toMatchObject({
      attributes: { 'lock.outcome': 'leaked', 'lock.hold_time': 0.7 },
      status: 'error',
    });
    await lease.release();
    expect(traces.names).toEqual(['acquire order', 'hold order']);
  });
});
