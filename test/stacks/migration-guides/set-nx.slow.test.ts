import { type Public, usePods } from './pods.js';
import type { Invoices } from './set-nx/after.js';
import { ALONE, crowd, sleep } from './stories.js';

/** Both pods are to be asked for the same tick. */
async function farFromTheNextTick(): Promise<void> {
  const untilNext = 600_000 - (Date.now() % 600_000);
  if (untilNext < 20_000) await sleep(untilNext + 100);
}

describe('from a hand-written SET NX', () => {
  const before = () => import('./set-nx/before.js').then((it) => ({ ...it, Service: it.Invoices }));
  const { client, startOne, ofBoth } = usePods<Public<Invoices>>({
    before,
    after: () => import('./set-nx/after.js').then((it) => ({ ...it, Service: it.Invoices })),
  });

  it('reminders are sent once when the timers fire together', async () => {
    await farFromTheNextTick();
    const sent = await ofBoth(async (pods) => {
      let count = 0;
      for (const pod of pods) {
        pod.send = async () => {
          count++;
          await sleep(200);
        };
      }
      await Promise.all(pods.map((pod) => pod.remind()));
      return count;
    });
    expect(sent).toEqual({ before: 1, after: 1 });
  });

  it('one payment of an invoice at a time', async () => {
    const payments = await ofBoth(([one, two]) =>
      crowd(100, [(work) => one.pay('7', work), (work) => two.pay('7', work)]),
    );
    expect(payments).toEqual({ before: ALONE, after: ALONE });
  });

  describe('while both releases run', () => {
    const both = () => import('./set-nx/both.js').then((it) => ({ ...it, Service: it.Invoices }));

    /** The number of reminders sent, if the timer of the second pod fires after the whole work of the first. */
    async function sentBy(...pods: readonly Public<Invoices>[]): Promise<number> {
      await farFromTheNextTick();
      let count = 0;
      for (const pod of pods) pod.send = async () => void count++;
      for (const pod of pods) await pod.remind();
      return count;
    }

    it('reminders that the new release has sent are not sent by the old one too', async () => {
      expect(await sentBy(await startOne(await both()), await startOne(await before()))).toBe(1);
    });

    it('reminders that the old one has sent are sent by the new release too, for it finds no key', async () => {
      expect(await sentBy(await startOne(await before()), await startOne(await both()))).toBe(2);
    });

    it('they are not, where the old one leaves its key', async () => {
      const old = await startOne(await before());
      old.remind = async () => {
        if ((await client().set('lock:remind', '1', 'PX', 60_000, 'NX')) === 'OK') await old.send();
      };
      expect(await sentBy(old, await startOne(await both()))).toBe(1);
    });

    it('one payment of an invoice at a time', async () => {
      const [one, two] = [await startOne(await before()), await startOne(await both())];
      expect(await crowd(100, [(work) => one.pay('7', work), (work) => two.pay('7', work)])).toEqual(ALONE);
    });
  });
});
