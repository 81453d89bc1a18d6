import {
  ANSWERS_KEEP_MS,
  type LeftReport,
  ROLL_CALL_EVERY_MS,
  type RollCall,
  type RollCalls,
  type StandingRollCall,
} from '../kernel/store/message-health.js';
import type { ScriptHost } from './script-host.js';
import { ANSWER_ROLL, CALL_ROLL, READ_ROLL } from './script/scripts.js';

/** So many answers are read at once: 4 kB each, so that no command holds Redis up for long. */
const ANSWERS_AT_ONCE = 25;

type CallReply = [nonce: string, scope: string, askedAt: number, ageMs: number, asked: number];

/** Roll calls by a message, and a hash of the answers that expires by itself. */
export class RedisRollCalls implements RollCalls {
  /** Private, because the store has these roll calls: a cycle could not be printed as JSON. */
  readonly #store: ScriptHost;

  constructor(store: ScriptHost) {
    this.#store = store;
  }

  call({ nonce, scope }: RollCall): Promise<StandingRollCall> {
    const { keys, database, isCluster } = this.#store;
    const channel = keys.rollChannel(database);
    const args = [nonce, scope, channel, ROLL_CALL_EVERY_MS, ANSWERS_KEEP_MS, isCluster ? 0 : 1];
    return this.#store.run(CALL_ROLL, [keys.roll()], args, readCall);
  }

  answer(nonce: string, answer: string): Promise<boolean> {
    const { keys, clientId } = this.#store;
    const args = [nonce, clientId, answer, ANSWERS_KEEP_MS];
    return this.#store.run(ANSWER_ROLL, [keys.roll(), keys.rollAnswers(nonce)], args, (reply) => reply === 1);
  }

  async leave(report: string): Promise<void> {
    const { keys, clientId } = this.#store;
    await this.#store.run(ANSWER_ROLL, [keys.roll(), keys.reports()], ['', clientId, report, ANSWERS_KEEP_MS]);
  }

  async reports(): Promise<ReadonlyMap<string, LeftReport>> {
    const reports = new Map<string, LeftReport>();
    for (const [clientId, text] of await this.#read(this.#store.keys.reports())) {
      const [, at, report] = /^(\d{1,16}) (.*)$/s.exec(text) ?? [];
      if (at !== undefined && report !== undefined) reports.set(clientId, { at: Number(at), report });
    }
    return reports;
  }

  count(nonce: string): Promise<number> {
    return this.#store.run(READ_ROLL, [this.#store.keys.rollAnswers(nonce)], ['count'], (reply) => reply as number);
  }

  read(nonce: string): Promise<ReadonlyMap<string, string>> {
    return this.#read(this.#store.keys.rollAnswers(nonce));
  }

  async #read(key: string): Promise<ReadonlyMap<string, string>> {
    const answers = new Map<string, string>();
    for (let cursor = '0', isOver = false; !isOver; isOver = cursor === '0') {
      const args = ['answers', cursor, ANSWERS_AT_ONCE];
      const [next, some] = await this.#store.run(READ_ROLL, [key], args, (reply) => reply as [string, string[]]);
      for (let index = 0; index < some.length; index += 2) answers.set(some[index]!, some[index + 1]!);
      cursor = next;
    }
    return answers;
  }

  async connected(): Promise<readonly string[] | undefined> {
    const { keys } = this.#store;
    try {
      const read = (reply: unknown): string[] => reply as string[];
      const inboxes = await this.#store.run(READ_ROLL, [keys.roll()], ['connected', keys.inboxes()], read);
      return inboxes.map((inbox) => inbox.slice(keys.inbox('').length));
    } catch {
      // An ACL forbids it.
      return undefined;
    }
  }
}

function readCall(reply: unknown): StandingRollCall {
  const [nonce, scope, askedAt, ageMs, asked] = reply as CallReply;
  return { nonce, scope, askedAt, ageMs, asked: asked < 0 ? undefined : asked };
}
