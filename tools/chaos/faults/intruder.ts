import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { insist } from '../../../test/support/redis/admin-client.js';
import { SeededRandom } from '../../../test/support/world/seeded-random.js';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';

const NAME = 'intruder';
const PASSWORD = 'channels-only';
/** The inboxes of the workers, and no key, no script. */
const RIGHTS = [
  'on',
  `>${PASSWORD}`,
  'resetkeys',
  'resetchannels',
  '&lock:inbox:*',
  '-@all',
  '+psubscribe',
  '+publish',
];
const INBOXES = 'lock:inbox:*';
/** The number of forgeries of one message, and the number of messages to remember. */
const FORGED = 6;
const REMEMBERED = 200;
/** A flood: so many lines at once, again and again. */
const WAVE = 50;
const WAVE_EVERY_MS = 20;
/** Messages that no script sends. */
const GARBAGE = ['', ' ', 'free', 'free 1', 'a/b 1 1 ', '\0\r\n', `${'x'.repeat(10_000)}/1 32 1 stock-0`];

/**
 * Another user of the same Redis, who may use the channels of the locks and nothing else. Overhears all grants, and
 * sends them into the inboxes of others, again and altered. It must have no effect, so it excuses nothing.
 */
export const intruder: Fault = {
  kind: 'a user with channels only: replays, forges and floods',
  strikes: 'nobody',
  async inject(world) {
    const { admin, ears, mouth } = await connect(world);
    try {
      const intrusion = new Intrusion(world, mouth);
      ears.on('pmessage', (_pattern, inbox: string, line: string) => intrusion.overhear(inbox, line));
      await insist(() => ears.psubscribe(INBOXES));
      const until = performance.now() + world.leaseMs * (1 + world.random.fraction());
      while (performance.now() < until) {
        await sleep(WAVE_EVERY_MS);
        intrusion.flood();
      }
      return intrusion.hasSent;
    } finally {
      ears.disconnect();
      mouth.disconnect();
      await insist(() => admin.call('ACL', 'DELUSER', NAME));
    }
  },
};

async function connect({ redis }: World): Promise<{ admin: Redis; ears: Redis; mouth: Redis }> {
  const admin = redis.admins[0]!;
  await insist(() => admin.call('ACL', 'SETUSER', NAME, 'reset', ...RIGHTS));
  const asIntruder = (): Redis => {
    const client = admin.duplicate({
      username: NAME,
      password: PASSWORD,
      connectionName: NAME,
      // It has no right to ask how Redis is.
      enableReadyCheck: false,
      disableClientInfo: true,
    });
    client.on('error', () => undefined);
    return client;
  };
  return { admin, ears: asIntruder(), mouth: asIntruder() };
}

class Intrusion {
  hasSent = false;
  readonly #inboxes = new Set<string>();
  readonly #lines: string[] = [];
  /** Its own messages, which it receives as well. */
  readonly #own = new Set<string>();
  /** Of its own: what it hears, and when, must not change what the other faults do. */
  readonly #random: SeededRandom;

  constructor(
    { settings }: World,
    private readonly mouth: Redis,
  ) {
    this.#random = new SeededRandom(settings.seed);
  }

  overhear(inbox: string, line: string): void {
    this.#inboxes.add(inbox);
    if (this.#own.has(line)) return;
    this.#lines.push(line);
    if (this.#lines.length > REMEMBERED) this.#lines.shift();
    // As it is to all others, at once: while it may still be true.
    for (const other of this.#inboxes) if (other !== inbox) this.#send(other, line);
    for (let count = 0; count < FORGED; count++) this.#send(this.#anyInbox(), this.#forge(line));
  }

  flood(): void {
    if (this.#lines.length === 0) return;
    for (let count = 0; count < WAVE; count++) {
      const line = this.#any(this.#lines);
      this.#send(this.#anyInbox(), this.#any([line, this.#forge(line), this.#any(GARBAGE)]));
    }
  }

  /** One of its words is another one: a number that is near, a word of another line, or anything. */
  #forge(line: string): string {
    const words = line.split(' ');
    const others = this.#any(this.#lines).split(' ');
    const place = this.#upTo(words.length);
    const word = words[place]!;
    const near = /^\d+$/.test(word) ? String(Number(word) + this.#any([-32, -1, 1, 32, 1e9])) : word.slice(0, -1);
    words[place] = this.#any([near, others[place] ?? word, word.toUpperCase(), '']);
    return words.join(' ');
  }

  #send(inbox: string, line: string): void {
    this.hasSent = true;
    this.#own.add(line);
    this.mouth.publish(inbox, line).catch(() => undefined);
  }

  #anyInbox(): string {
    return this.#any([...this.#inboxes]);
  }

  #any<T>(things: readonly T[]): T {
    return things[this.#upTo(things.length)]!;
  }

  #upTo(limit: number): number {
    return Math.floor(this.#random.fraction() * limit);
  }
}
