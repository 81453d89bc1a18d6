import { type Public, usePods, type Version } from './pods.js';
import type { Invoices } from './set-nx/after.js';
import { crowd, sleep } from './stories.js';

type Versions = () => Promise<Version<Public<Invoices>>>;
const before: Versions = () => import('./set-nx/before.js').then((it) => ({ ...it, Service: it.Invoices }));
const after: Versions = () => import('./set-nx/after.js').then((it) => ({ ...it, Service: it.Invoices }));

/** Both pods are to be asked for the same tick. */
async function farFromTheNextTick(): Promise<void> {
  const untilNext = 600_000 - (Date.now() % 600_000);
  if (untilNext < 5_000) await sleep(untilNext + 100);
}

describe('from a hand-written SET NX', () => {
  const { client, start } = usePods();
  afterEach(() => client().flushall());

  describe.each([
    ['before', before],
    ['after', after],
  ])('%s', (version, load) => {
    const isOld = version === 'before';

    it('reminders are sent once when the timers fire together', async () => {
      await farFromTheNextTick();
      const pods = await start(load);
      let sent = 0;
      for (const pod of pods) {
        pod.send = async () => {
          sent++;
          await sleep(100);
        };
      }
      await Promise.all(pods.map((pod) => pod.remind()));
      expect(sent).toBe(1);
    });

    it(`a clock that is late ${isOld ? 'sends them twice' : 'does not matter'}`, async () => {
      await farFromTheNextTick();
      const pods = await start(load);
      let sent = 0;
      for (const pod of pods) pod.send = async () => void sent++;
      for (const pod of pods) await pod.remind();
      expect(sent).toBe(isOld ? 2 : 1);
    });

    it('one payment of an invoice at a time', async () => {
      const pods = await start(load);
      const payments = await crowd(
        100,
        pods.map((pod) => (work) => pod.pay('7', work)),
      );
      expect(payments).toEqual({ ran: 2, atOnce: 1 });
    });

    it(`work that takes longer than the lease ${isOld ? 'is not alone' : 'is alone'}`, async () => {
      const pods = await start(load);
      const payments = await crowd(
        1_500,
        pods.map((pod) => (work) => pod.pay('7', work)),
      );
      expect(payments).toEqual({ ran: 2, atOnce: isOld ? 2 : 1 });
    });

    it(`a late release ${isOld ? 'frees the lock of the next holder' : 'frees nothing'}`, async () => {
      const [one, two] = await start(load);
      let isHeld = false;
      let second: Promise<unknown> | undefined;
      await one.pay('7', async () => {
        await client().flushall(); // as when a process stands still until its lease is over
        await new Promise<void>((begun) => {
          second = two.pay('7', async () => {
            isHeld = true;
            begun();
            await sleep(500);
            isHeld = false;
          });
        });
      });
      let wasHeld: boolean | undefined;
      await one.pay('7', async () => void (wasHeld = isHeld));
      await second;
      expect(wasHeld).toBe(isOld);
    });
  });
});
