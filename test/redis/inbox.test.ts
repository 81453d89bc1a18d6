import { EventEmitter } from 'node:events';
import { jest } from '@jest/globals';
import fc from 'fast-check';
import type { PushedGrant } from '../../lib/kernel/store/message-health.js';
import { LockStoreError } from '../../lib/kernel/store/store-error.js';
import type { Random } from '../../lib/kernel/util/clock.js';
import type { Connection, LockServer } from '../../lib/redis/connection/connection.js';
import type { ServerConnection } from '../../lib/redis/connection/server-connection.js';
import { sealOf } from '../../lib/redis/grant-seal.js';
import { InboxProbes } from '../../lib/redis/inbox-probes.js';
import { Inbox, readMessage } from '../../lib/redis/inbox.js';
import { encodeResource, Keys } from '../../lib/redis/keys.js';
import type { ScriptCall } from '../../lib/redis/script/script.js';
import { fuzzKeys } from '../support/names/key-collisions.js';
import { runs } from '../support/simulation/runs.js';
import { FakeClock, settle } from '../support/world/fake-clock.js';

describe('an inbox', () => {
  /** Names that are made to look like another message. */
  const hostile = fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
    fc
      .array(fc.constantFrom('free', ' ', '1', '2 3', 'a/b', '/', '%20', '\n', '{', '\u2028', 'x'), {
        minLength: 1,
        maxLength: 8,
      })
      .map((parts) => parts.join('')),
  );
  const number = fc.nat(10 ** 9);
  const client = fc.constantFrom('free/x', 'host:1:abc/Ab-_9', '1/2', 'a.b@c/0');

  const SEAL = 'ab'.repeat(20);

  function grantIn(message: string): PushedGrant {
    const said = readMessage(message);
    if (!said || !('grant' in said)) throw new Error(`no grant: ${message}`);
    return said.grant;
  }

  describe('a message in the inbox', () => {
    it('about a grant says of each owner whether it is for it, and is never taken for another message', () => {
      fc.assert(
        fc.property(hostile, number, number, client, (resource, token, sentAt, clientId) => {
          const owner = `${clientId}/S3cret_-`;
          const message = `${sealOf(`${token} ${sentAt}`, owner)} ${token} ${sentAt} ${encodeResource(resource)}`;
          const { isFor, ...grant } = grantIn(message);
          expect(grant).toEqual({ fencingToken: token, sentAt, resource });
          expect(isFor(owner)).toBe(true);
          expect(isFor(`${clientId}/another`)).toBe(false);
          expect(message).not.toContain('S3cret_-');
        }),
        { seed: 20_260_101, numRuns: runs(1_000) },
      );
    });

    it('about a grant is ignored if its token or its stamp was changed', () => {
      fc.assert(
        fc.property(number, number, number, number, (token, sentAt, otherToken, otherStamp) => {
          fc.pre(token !== otherToken || sentAt !== otherStamp);
          const message = `${sealOf(`${token} ${sentAt}`, 'a/b/c')} ${otherToken} ${otherStamp} x`;
          expect(grantIn(message).isFor('a/b/c')).toBe(false);
        }),
        { seed: 20_260_101, numRuns: runs(1_000) },
      );
    });

    it('about what is left of a minimum says for whom it is, and cannot be made a grant', () => {
      fc.assert(
        fc.property(hostile, number, number, client, (resource, leftMs, sentAt, clientId) => {
          const owner = `${clientId}/S3cret_-`;
          const [seal, name] = [sealOf(`kept ${leftMs} ${sentAt}`, owner), encodeResource(resource)];
          const said = readMessage(`${seal} kept ${leftMs} ${sentAt} ${name}`);
          if (!said || !('notice' in said)) throw new Error('no notice');
          const { isFor, ...notice } = said.notice;
          expect(notice).toEqual({ resource, leftMs, sentAt });
          expect(isFor(owner)).toBe(true);
          expect(isFor(`${clientId}/another`)).toBe(false);
          expect(grantIn(`${seal} ${leftMs} ${sentAt} ${name}`).isFor(owner)).toBe(false);
          const longer = readMessage(`${seal} kept ${leftMs + 1} ${sentAt} ${name}`);
          expect(longer && 'notice' in longer && longer.notice.isFor(owner)).toBe(false);
        }),
        { seed: 20_260_101, numRuns: runs(1_000) },
      );
    });

    it('that is a probe is passed on whole, and is no grant', () => {
      const text = `probe ${'Ab-_'.repeat(5)}09 17`;
      expect(readMessage(text)).toEqual({ probe: text });
    });

    it.each([
      '',
      'probe',
      'probe  1',
      'probe x 1',
      `probe ${'a'.repeat(22)}`,
      `probe ${'a'.repeat(22)} x`,
      `probe ${'a'.repeat(22)} 1 stock`,
      `probe ${'a'.repeat(22)} ${'1'.repeat(17)}`,
      `probe ${'/'.repeat(22)} 1`,
      `${SEAL} kept 1 2 `,
      `${SEAL} kept 1 x`,
      `${SEAL} kept -1 2 x`,
      `kept ${SEAL} 1 2 x`,
      'latch 5 x',
      'a/b 1 x',
      'a/b/s3cret 1 2 x',
      `${SEAL} 1 2 `,
      `${SEAL} 12345678901234567 2 x`,
      `${SEAL.toUpperCase()} 1 2 x`,
      `${SEAL}0 1 2 x`,
      `${SEAL} 1 2 ${'x'.repeat(2_000)}`,
    ])('that is none of ours says nothing: %j', (message) => {
      expect(readMessage(message)).toBeUndefined();
    });
  });

  /**
   * Fates of a probe. `loses`: it gets a reply, but its message is lost. `is read late`: the replies to two probes are
   * read before their messages, which have arrived. `is slow`: the message arrives 0.7 s after the reply.
   */
  type Way = 'delivers' | 'loses' | 'is slow' | 'is read late' | 'says nothing' | 'knows no listener' | LockStoreError;

  /** The probes of one instance, on simulated servers. */
  class ProbedInbox {
    readonly clock = new FakeClock();
    readonly servers: { readonly connection: ServerConnection; way: Way }[];
    /** The messages sent, with their time and server. */
    readonly sent: { readonly at: number; readonly server: number; readonly text: string }[] = [];
    /** The events of the connection, and the calls of the listener. */
    readonly log: string[] = [];
    readonly probes: InboxProbes;
    isOpen = true;
    mayLoseMessages = false;
    /** The position of the jitter between its bounds. */
    chance = 0.5;
    #unanswered: (() => void)[] = [];
    #unread: string[] = [];
    #ids = 0;

    constructor(count = 1, isCluster = false) {
      const isConnected = true;
      this.servers = Array.from({ length: count }, () => {
        return { connection: { isConnected } as ServerConnection, way: 'delivers' };
      });
      const random: Random = { fraction: () => this.chance, id: () => String(this.#ids++).padStart(22, 'x') };
      const mayLoseMessages = (): boolean => this.mayLoseMessages;
      this.probes = new InboxProbes({
        connection: {
          isCluster,
          get mayLoseMessages() {
            return mayLoseMessages();
          },
          serverInTurn: (turn): LockServer => ({ server: this.servers[turn % count]!.connection, slot: turn % count }),
          replaceSubscriber: () => this.#replaced(),
          route: <T>(call: ScriptCall<T>) => this.#route(call),
        },
        channel: 'inbox',
        keyAt: (slot) => `key:${slot}`,
        isOpen: () => this.isOpen,
        deliveryUncertain: () => this.log.push('deliveryUncertain'),
        clock: this.clock,
        random,
      });
      this.probes.opened();
    }

    get way(): Way {
      return this.servers[0]!.way;
    }

    set way(way: Way) {
      this.servers[0]!.way = way;
    }

    /** In small steps: what comes back is read between them. */
    async pass(ms: number): Promise<void> {
      for (let left = ms; left > 0; left -= 25) {
        await this.clock.advance(Math.min(left, 25));
        for (let turn = 0; turn < 4; turn++) await settle();
      }
    }

    /** Until the next probe was sent and judged. */
    async untilSent(count = 1): Promise<void> {
      const until = this.sent.length + count;
      for (let step = 0; this.sent.length < until; step++) {
        if (step > 4_000) throw new Error('no probe was sent');
        await this.pass(25);
      }
    }

    /** The servers that said nothing answer now, in their present way. */
    async answer(): Promise<void> {
      for (const answer of this.#unanswered.splice(0)) answer();
      for (let turn = 0; turn < 4; turn++) await settle();
    }

    async #route<T>({ keys, args, read }: ScriptCall<T>): Promise<T> {
      const server = Number(keys[0]!.split(':')[1]);
      const text = String(args[1]);
      this.sent.push({ at: this.clock.now(), server, text });
      const { way } = this.servers[server]!;
      if (way instanceof LockStoreError) throw way;
      if (way === 'says nothing') {
        await new Promise<void>((resolve) => this.#unanswered.push(resolve));
        if (this.servers[server]!.way instanceof LockStoreError) throw this.servers[server]!.way;
      }
      if (way === 'is slow') this.clock.setTimer(() => this.probes.arrived(text), 700);
      else if (way === 'is read late') this.#readLate(text);
      else if (this.servers[server]!.way !== 'loses') this.probes.arrived(text);
      return read(way === 'knows no listener' ? 0 : 1);
    }

    #readLate(text: string): void {
      this.#unread.push(text);
      if (this.#unread.length === 2)
        setImmediate(() => this.#unread.splice(0).forEach((each) => this.probes.arrived(each)));
    }

    #replaced(): void {
      this.log.push('replaced');
      this.isOpen = false;
      this.probes.closed();
      this.isOpen = true;
      this.probes.opened();
    }
  }

  const REFUSED = new LockStoreError('refused', "NOPERM The user executing the script can't publish to the channel");
  const BUSY = new LockStoreError('notExecuted', 'BUSY Redis is busy running a script');
  const BROKEN = new LockStoreError('unknown', 'the connection broke before the reply');

  describe('probes of the inbox', () => {
    it('are sent every 1.4 to 1.75 s while a waiter relies on messages, and prove that they arrive', async () => {
      const inbox = new ProbedInbox();
      expect(inbox.probes.trustedForMs).toBe(Infinity);
      inbox.probes.setNeeded(true);
      await inbox.pass(60_000);
      expect(inbox.sent.length).toBeGreaterThan(60 / 1.75);
      expect(inbox.sent.length).toBeLessThanOrEqual(1 + 60 / 1.4);
      expect(new Set(inbox.sent.map(({ text }) => text)).size).toBe(inbox.sent.length);
      expect([inbox.probes.trustedForMs, inbox.log]).toEqual([Infinity, []]);
    });

    it('are not sent while no waiter does, and set no timer then', async () => {
      const inbox = new ProbedInbox();
      await inbox.pass(10_000);
      expect(inbox.clock.timers).toBe(0);
      inbox.probes.setNeeded(true);
      await inbox.untilSent(2);
      inbox.probes.setNeeded(false);
      const { length } = inbox.sent;
      await inbox.pass(10_000);
      expect([inbox.sent.length, inbox.clock.timers]).toEqual([length, 0]);
    });

    it('detect lost messages with the second one, report them at once, and reconnect', async () => {
      const inbox = new ProbedInbox();
      inbox.probes.setNeeded(true);
      await inbox.untilSent(3);
      inbox.way = 'loses';
      const from = inbox.clock.now();
      await inbox.untilSent();
      expect([inbox.log, inbox.probes.trustedForMs, inbox.probes.isLosing]).toEqual([[], Infinity, false]);
      await inbox.untilSent();
      expect([inbox.log, inbox.probes.trustedForMs, inbox.probes.isLosing]).toEqual([['deliveryUncertain'], 0, true]);
      inbox.way = 'delivers';
      while (inbox.log.length < 2) await inbox.pass(25);
      expect(inbox.log).toEqual(['deliveryUncertain', 'replaced']);
      expect(inbox.clock.now() - from).toBeLessThan(3_000);
      // It is not known yet whether the new connection is better.
      expect([inbox.probes.trustedForMs, inbox.probes.isLosing]).toEqual([0, true]);
      await inbox.untilSent();
      expect([inbox.probes.trustedForMs, inbox.probes.isLosing]).toEqual([Infinity, false]);
      await inbox.pass(20_000);
      expect(inbox.log).toEqual(['deliveryUncertain', 'replaced']);
    });

    it('are followed sooner if a message is lost, but not if it is late', async () => {
      const inbox = new ProbedInbox();
      inbox.probes.setNeeded(true);
      await inbox.untilSent(2);
      const pauseAfter = async (): Promise<number> => {
        const { at } = inbox.sent.at(-1)!;
        await inbox.untilSent();
        return inbox.sent.at(-1)!.at - at;
      };
      inbox.way = 'loses';
      await inbox.untilSent();
      inbox.way = 'delivers';
      expect(await pauseAfter()).toBeLessThan(850);
      // From now on as before.
      expect(await pauseAfter()).toBeGreaterThanOrEqual(1_400);
      inbox.way = 'loses';
      await inbox.untilSent();
      inbox.way = 'delivers';
      await inbox.pass(700);
      inbox.probes.arrived(inbox.sent.at(-1)!.text);
      expect(await pauseAfter()).toBeGreaterThanOrEqual(1_400);
      expect(inbox.log).toEqual([]);
    });

    it('prove a new connection even if messages are slow, as on a busy cluster', async () => {
      const inbox = new ProbedInbox();
      inbox.way = 'loses';
      inbox.probes.setNeeded(true);
      while (!inbox.log.includes('replaced')) await inbox.pass(25);
      inbox.way = 'is slow';
      await inbox.untilSent();
      expect([inbox.probes.trustedForMs, inbox.probes.isLosing]).toEqual([0, true]);
      await inbox.pass(750);
      expect([inbox.probes.trustedForMs, inbox.probes.isLosing]).toEqual([Infinity, false]);
      await inbox.pass(20_000);
      expect(inbox.log).toEqual(['deliveryUncertain', 'replaced']);
    });

    it('of a fleet reconnect at different times', async () => {
      const fleet = Array.from({ length: 20 }, (_, index) => {
        const inbox = new ProbedInbox();
        inbox.way = 'loses';
        inbox.probes.setNeeded(true);
        return { inbox, chance: index / 20 };
      });
      const delays = await Promise.all(
        fleet.map(async ({ inbox, chance }) => {
          await inbox.untilSent();
          inbox.chance = chance;
          await inbox.untilSent();
          return inbox.clock.nextTimerMs;
        }),
      );
      expect(new Set(delays).size).toBe(20);
    });

    it('one of which alone is lost, or late, prove nothing', async () => {
      const inbox = new ProbedInbox();
      inbox.probes.setNeeded(true);
      for (let round = 0; round < 5; round++) {
        inbox.way = 'loses';
        await inbox.untilSent();
        const late = inbox.sent.at(-1)!.text;
        if (round % 2 === 0) {
          inbox.way = 'delivers';
          await inbox.untilSent();
        } else {
          inbox.probes.arrived(late);
          await inbox.untilSent();
          inbox.way = 'delivers';
          await inbox.untilSent();
        }
      }
      expect(inbox.log).toEqual([]);
    });

    it('do not affect a connection that was reconnected in the meantime', async () => {
      const inbox = new ProbedInbox();
      inbox.way = 'loses';
      inbox.probes.setNeeded(true);
      await inbox.untilSent(2);
      inbox.probes.closed();
      inbox.probes.opened();
      inbox.way = 'delivers';
      await inbox.pass(5_000);
      expect([inbox.log, inbox.probes.trustedForMs]).toEqual([['deliveryUncertain'], Infinity]);
    });

    it('begin again at once for the next waiter, though the connection was to stay for a long while yet', async () => {
      const inbox = new ProbedInbox();
      inbox.way = 'loses';
      inbox.probes.setNeeded(true);
      // By now, the pauses before a reconnect have reached their maximum.
      for (let count = 1; count <= 8; count++) while (inbox.log.length <= count) await inbox.pass(25);
      await inbox.untilSent(3);
      const before = inbox.log.length;
      inbox.probes.setNeeded(false);
      await inbox.pass(2_000);
      inbox.probes.setNeeded(true);
      // Two periods, and a pause by chance.
      await inbox.pass(3_500);
      expect(inbox.log.slice(before)).toContain('deliveryUncertain');
      expect(inbox.probes.trustedForMs).toBe(0);
    });

    it('never keep the process alive', async () => {
      const inbox = new ProbedInbox();
      const setTimer = inbox.clock.setTimer.bind(inbox.clock);
      const inBackground = new Set<boolean | undefined>();
      inbox.clock.setTimer = (callback, delayMs, options?: { background?: boolean }) => {
        inBackground.add(options?.background);
        return setTimer(callback, delayMs);
      };
      inbox.way = 'loses';
      inbox.probes.setNeeded(true);
      await inbox.untilSent(4);
      expect(inbox.log).toContain('replaced');
      expect([...inBackground]).toEqual([true]);
    });

    it('are lost, wherever the message comes from, while the server knows of no connection that listens', async () => {
      const inbox = new ProbedInbox();
      inbox.way = 'knows no listener';
      inbox.probes.setNeeded(true);
      await inbox.untilSent(2);
      expect(inbox.log).toEqual(['deliveryUncertain']);
    });

    describe('that are not answered', () => {
      it('are no loss: the server is silent, gets no second one, and says since when', async () => {
        const inbox = new ProbedInbox();
        inbox.probes.setNeeded(true);
        await inbox.untilSent(2);
        expect(inbox.probes.silentSince).toBeUndefined();
        inbox.way = 'says nothing';
        await inbox.untilSent();
        const { at } = inbox.sent.at(-1)!;
        const { length } = inbox.sent;
        await inbox.pass(3_000);
        expect([inbox.probes.silentSince, inbox.sent.length]).toEqual([at, length]);
        inbox.way = 'delivers';
        await inbox.answer();
        expect(inbox.probes.silentSince).toBeUndefined();
        await inbox.pass(3_000);
        expect([inbox.probes.trustedForMs, inbox.log]).toEqual([Infinity, []]);
      });

      it('stay unanswered over a new connection, and the server is asked at once', async () => {
        const inbox = new ProbedInbox();
        inbox.probes.setNeeded(true);
        inbox.way = BROKEN;
        await inbox.untilSent();
        const since = inbox.sent[0]!.at;
        expect(inbox.probes.silentSince).toBe(since);
        inbox.way = 'delivers';
        inbox.probes.connected();
        await inbox.pass(1);
        expect([inbox.sent.length, inbox.probes.silentSince]).toEqual([2, undefined]);
      });

      it('are forgotten with their connection if the next one cannot be probed: waiters ask there', async () => {
        const inbox = new ProbedInbox();
        inbox.probes.setNeeded(true);
        inbox.way = 'says nothing';
        await inbox.untilSent();
        inbox.isOpen = false;
        inbox.probes.closed();
        await inbox.pass(2_000);
        expect(inbox.probes.silentSince).toBe(inbox.sent[0]!.at);
        inbox.way = BROKEN;
        await inbox.answer();
        inbox.probes.connected();
        await inbox.pass(2_000);
        expect(inbox.probes.silentSince).toBeUndefined();
      });
    });

    it('that are answered with an error prove nothing, and show that the server answers', async () => {
      const inbox = new ProbedInbox();
      inbox.probes.setNeeded(true);
      for (const way of [BUSY, 'loses', BUSY, BROKEN] as const) {
        inbox.way = way;
        await inbox.untilSent();
        if (way === BUSY) expect(inbox.probes.silentSince).toBeUndefined();
      }
      inbox.way = BUSY;
      await inbox.untilSent(5);
      expect([inbox.log, inbox.probes.trustedForMs]).toEqual([[], Infinity]);
    });

    it('that Redis refuses leave waiters to ask, and are sent seldom, until it allows them', async () => {
      const inbox = new ProbedInbox();
      inbox.probes.setNeeded(true);
      inbox.way = REFUSED;
      await inbox.untilSent();
      expect([inbox.log, inbox.probes.trustedForMs, inbox.probes.isLosing]).toEqual([['deliveryUncertain'], 0, false]);
      await inbox.pass(30_000);
      expect(inbox.sent.length).toBeLessThanOrEqual(5);
      expect([inbox.log, inbox.probes.silentSince]).toEqual([['deliveryUncertain'], undefined]);
      inbox.way = 'delivers';
      await inbox.untilSent();
      expect(inbox.probes.trustedForMs).toBe(Infinity);
      inbox.way = REFUSED;
      await inbox.untilSent();
      expect(inbox.log).toEqual(['deliveryUncertain', 'deliveryUncertain']);
    });

    it('are judged after the pending input was read, if the process was blocked', async () => {
      const inbox = new ProbedInbox();
      inbox.probes.setNeeded(true);
      inbox.way = 'is read late';
      for (let round = 0; round < 5; round++) {
        await inbox.untilSent();
        inbox.clock.block(3_000);
        await inbox.untilSent();
      }
      expect(inbox.log).toEqual([]);
    });

    describe('against another user who reads the channel and writes to it', () => {
      it('count once: what he repeats proves nothing', async () => {
        const inbox = new ProbedInbox();
        inbox.probes.setNeeded(true);
        await inbox.untilSent(3);
        inbox.way = 'loses';
        for (let sent = 0; sent < 2; sent++) {
          await inbox.untilSent();
          for (const { text } of inbox.sent.slice(0, 3)) inbox.probes.arrived(text);
        }
        expect(inbox.log[0]).toBe('deliveryUncertain');
      });

      it('cannot be foreseen: what he makes up proves nothing', async () => {
        const inbox = new ProbedInbox();
        inbox.probes.setNeeded(true);
        await inbox.untilSent();
        inbox.way = 'loses';
        for (let sent = 0; sent < 2; sent++) {
          for (let number = 1; number < 9; number++) inbox.probes.arrived(`probe ${'y'.repeat(22)} ${number}`);
          await inbox.untilSent();
        }
        expect(inbox.log[0]).toBe('deliveryUncertain');
      });
    });

    it('end with the store: no timer is left, and no more events are emitted', async () => {
      const inbox = new ProbedInbox();
      inbox.way = 'loses';
      inbox.probes.setNeeded(true);
      await inbox.untilSent(2);
      expect(inbox.log).toEqual(['deliveryUncertain']);
      inbox.probes.stop();
      inbox.isOpen = false;
      inbox.probes.closed();
      inbox.probes.setNeeded(true);
      expect(inbox.clock.timers).toBe(0);
      await inbox.pass(5_000);
      expect(inbox.log).toEqual(['deliveryUncertain']);
    });

    it('let a waiter rely on messages for five seconds if a loss may go unnoticed', () => {
      const inbox = new ProbedInbox();
      inbox.mayLoseMessages = true;
      expect(inbox.probes.trustedForMs).toBe(5_000);
      inbox.isOpen = false;
      expect(inbox.probes.trustedForMs).toBe(0);
    });

    describe('on a cluster', () => {
      const cluster = () => {
        const inbox = new ProbedInbox(3, true);
        inbox.mayLoseMessages = true;
        inbox.probes.opened();
        inbox.probes.setNeeded(true);
        return inbox;
      };

      it('go through one primary after the other, as many in all as on one server', async () => {
        const inbox = cluster();
        await inbox.untilSent(9);
        expect(inbox.sent.map(({ server }) => server)).toEqual([1, 2, 0, 1, 2, 0, 1, 2, 0]);
        expect(inbox.sent.at(-1)!.at - inbox.sent[0]!.at).toBeGreaterThanOrEqual(8 * 1_400);
        expect(inbox.log).toEqual([]);
      });

      it('find messages that are lost from all of them by the second one', async () => {
        const inbox = cluster();
        await inbox.untilSent(3);
        for (const server of inbox.servers) server.way = 'loses';
        await inbox.untilSent(2);
        expect(inbox.log).toEqual(['deliveryUncertain']);
      });

      it('are not counted as a loss if one primary is down and the store still answers', async () => {
        const inbox = cluster();
        inbox.servers[1]!.way = 'says nothing';
        await inbox.untilSent(12);
        expect(inbox.sent.filter(({ server }) => server === 1)).toHaveLength(1);
        expect([inbox.log, inbox.probes.silentSince, inbox.probes.trustedForMs]).toEqual([[], undefined, 5_000]);
      });

      it('count no listeners: those of other nodes are not known', async () => {
        const inbox = cluster();
        for (const server of inbox.servers) server.way = 'knows no listener';
        await inbox.untilSent(6);
        expect(inbox.log).toEqual([]);
      });
    });
  });
});

describe('a subscription that Redis refuses', () => {
  const NOPERM = Object.assign(new Error('NOPERM no access to the channel'), { name: 'ReplyError' });
  const BUSY = Object.assign(new Error('BUSY a script runs'), { name: 'ReplyError' });

  /** An inbox whose subscriptions are answered as the test says. */
  class Subscribed extends EventEmitter {
    readonly clock = new FakeClock();
    readonly reconnected = jest.fn();
    readonly inbox: Inbox;
    status = 'ready';
    asked = 0;
    error: Error | undefined;

    constructor() {
      super();
      const connection = { subscriber: this, isConnected: true, onConnected: () => {}, serverInTurn: () => undefined };
      const { reconnected } = this;
      const ignore = (): void => {};
      const listener = {
        granted: ignore,
        retained: ignore,
        called: ignore,
        unasked: ignore,
        opened: ignore,
        freed: ignore,
        asked: ignore,
        deliveryUncertain: ignore,
      };
      this.inbox = new Inbox(
        connection as unknown as Connection,
        { own: 'inbox', ofAll: 'roll' },
        () => 'key',
        { ...listener, reconnected },
        this.clock,
      );
    }

    async subscribe(channel: string): Promise<unknown> {
      if (channel === 'inbox') this.asked++;
      if (this.error) throw this.error;
      return 1;
    }

    async connects(): Promise<void> {
      this.status = 'ready';
      this.emit('ready');
      await settle();
    }

    breaks(): void {
      this.status = 'reconnecting';
      this.emit('close');
    }

    async after(ms: number): Promise<void> {
      await this.clock.advance(ms);
      await settle();
    }
  }

  it('is probed every 10 s, and waiters are notified once of the rejection and once of its end', async () => {
    const subscribed = new Subscribed();
    const { inbox, reconnected } = subscribed;
    subscribed.error = NOPERM;
    await subscribed.connects();
    expect([inbox.refusal, inbox.isSettled]).toEqual([expect.stringContaining(NOPERM.message), true]);
    for (let asked = 1; asked < 5; asked++) {
      expect(subscribed.asked).toBe(asked);
      await subscribed.after(9_999);
      expect(subscribed.asked).toBe(asked);
      await subscribed.after(1);
    }
    expect(reconnected).toHaveBeenCalledTimes(1);
    subscribed.error = undefined;
    await subscribed.after(10_000);
    expect([inbox.refusal, inbox.isSettled]).toEqual([undefined, true]);
    expect(reconnected).toHaveBeenCalledTimes(2);
    await subscribed.after(60_000);
    expect(subscribed.asked).toBe(6);
  });

  it('for a moment only, is asked for at once', async () => {
    const subscribed = new Subscribed();
    subscribed.error = BUSY;
    await subscribed.connects();
    expect(subscribed.inbox.isSettled).toBe(false);
    subscribed.error = undefined;
    await subscribed.after(250);
    expect([subscribed.inbox.isSettled, subscribed.asked]).toEqual([true, 2]);
  });

  it('is asked for on the next connection, and not once more for the last one', async () => {
    const subscribed = new Subscribed();
    subscribed.error = NOPERM;
    await subscribed.connects();
    subscribed.breaks();
    subscribed.error = undefined;
    await subscribed.connects();
    await subscribed.after(60_000);
    expect([subscribed.inbox.refusal, subscribed.asked]).toEqual([undefined, 2]);
  });

  it('is not asked for after the end', async () => {
    const subscribed = new Subscribed();
    subscribed.error = NOPERM;
    await subscribed.connects();
    subscribed.inbox.close();
    await subscribed.after(60_000);
    expect(subscribed.asked).toBe(1);
  });
});

const plain = (keys: Keys, resource: string): string => `${keys.prefix}:{${resource}}`;

/** Ways to name keys that are not good enough. */
const MUTANTS: [string, (keys: Keys, resource: string) => string][] = [
  ['names as they are', plain],
  ['only closing braces encoded', (keys, name) => plain(keys, name.replaceAll('}', '%7D'))],
  [
    'a percent sign left as it is',
    (keys, name) =>
      plain(
        keys,
        name.replace(/[{}]/g, (brace) => (brace === '{' ? '%7B' : '%7D')),
      ),
  ],
  ['no case', (keys, name) => Keys.prototype.lock.call(keys, name.toLowerCase())],
  ['one form for what looks alike', (keys, name) => Keys.prototype.lock.call(keys, name.normalize('NFC'))],
  ['no hash tag', (keys, name) => Keys.prototype.lock.call(keys, name).replace(/[{}]/g, '')],
  ['cut at 100 characters', (keys, name) => Keys.prototype.lock.call(keys, name.slice(0, 100))],
  ['trimmed', (keys, name) => Keys.prototype.lock.call(keys, name.trim())],
];

describe('keys', () => {
  it('are those of one name each, in one slot of a cluster, and what cannot be a name is refused', () => {
    const { violations, names, refused } = fuzzKeys(runs(3_000), 20_260_101);
    expect(violations).toEqual([]);
    // It is about something.
    expect(refused).toBeGreaterThan(names / 100);
  });

  it.each(MUTANTS)('would be found: %s', (_what, lock) => {
    class Mutant extends Keys {
      override lock(resource: string): string {
        return lock(this, resource);
      }
    }
    expect(fuzzKeys(5_000, 1, (prefix) => new Mutant(prefix)).violations).toHaveLength(1);
  });

  it('leave ordinary names readable', () => {
    expect(new Keys('lock').lock('order:42 é🔒')).toBe('lock:{order:42 é🔒}');
  });

  it.each([
    ['{a}', 'lock:{%7Ba%7D}'],
    ['%7Ba%7D', 'lock:{%257Ba%257D}'],
    ['a}:waiters', 'lock:{a%7D:waiters}'],
    ['line\nbreak', 'lock:{line%0Abreak}'],
    ['nul\0', 'lock:{nul%00}'],
    ['__proto__', 'lock:{__proto__}'],
  ])('%j is %s', (name, key) => {
    expect(new Keys('lock').lock(name)).toBe(key);
  });
});
