import { setTimeout as sleep } from 'node:timers/promises';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { Rotation } from '../../support/redis/rotation.js';

const CALLERS = 200;
const INSTANCES = 4;
const RESOURCES = 50;
/** The short form sees three changes, and half a hand-over of each caller between two of them. */
const SECONDS = process.env.TEST_SPEED === 'long' ? 60 : 8;
const CHANGE_EVERY_MS = 2_000;
/** Three of four callers wait, for any of these. With the longer one, the machine has time for something else. */
const HOLD_MS = process.env.TEST_SPEED === 'long' ? 5 : 150;

describeOnMachine('a password that changes every 2 s, under 200 callers, with connections that are killed', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => ({ host: 'unused.invalid' }));

  it.each([2, 3] as const)(
    'no lease is lost, no call fails, and no password is shown after its end, by RESP%i',
    async (protocol) => {
      const rotation = new Rotation([admin()]);
      await rotation.begin();
      // The last one ends half a period after the next one has come.
      rotation.lifeMs = CHANGE_EVERY_MS / 2;
      const lines: string[] = [];
      const connection = {
        host: '127.0.0.1',
        port: redis().port,
        protocol,
        credentials: rotation.credentials,
      } as const;
      const options = { connection, warn: (line: string) => lines.push(line), defaults: { waitMs: 60_000 } };
      const instances = await Promise.all(Array.from({ length: INSTANCES }, () => start(options)));
      const sections = Array.from({ length: RESOURCES }, (_, index) => new CriticalSections(`r${index}`));
      const until = performance.now() + SECONDS * 1_000;
      let holds = 0;
      const call = async (caller: number): Promise<void> => {
        const instance = instances[caller % INSTANCES]!;
        for (let round = 0; performance.now() < until; round++) {
          await sections[(caller * 7 + round) % RESOURCES]!.call(instance, {}, async (lease) => {
            await sleep(HOLD_MS);
            lease.signal.throwIfAborted();
          });
          holds++;
        }
      };
      const rotate = async (): Promise<number> => {
        let changes = 0;
        while (performance.now() < until) {
          await sleep(CHANGE_EVERY_MS / 2);
          await rotation.change();
          changes++;
          await sleep(CHANGE_EVERY_MS / 4);
          await rotation.kill();
          await sleep(CHANGE_EVERY_MS / 4);
          await rotation.endLast();
        }
        return changes;
      };
      const [changes] = await Promise.all([rotate(), ...Array.from({ length: CALLERS }, (_, caller) => call(caller))]);
      const kinds = instances.flatMap(({ events }) => events.map(({ type }) => type));
      process.stdout.write(
        `RESP${protocol}: ${holds} holds, ${changes} passwords, ${rotation.returned.length} calls of the provider\n`,
      );
      expect(changes).toBeGreaterThan(2);
      expect(holds).toBeGreaterThan(CALLERS);
      sections.forEach((each) => each.expectSound(each.tokens.length));
      expect(kinds).not.toContain('lost');
      expect(await rotation.refused()).toBe(0);
      expect(lines).toEqual([]);
    },
    (SECONDS + 60) * 1_000,
  );
});
