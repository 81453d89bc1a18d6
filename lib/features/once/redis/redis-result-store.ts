import { createHash } from 'node:crypto';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';
import { readAcquireReply } from '../../../redis/lock-replies.js';
import type { ScriptLockStore } from '../../../redis/script-lock-store.js';
import { CLAIM_RESULT, FORGET_RESULT, KEEP_RESULT, READ_RESULT } from '../../../redis/script/scripts.js';
import type { ClaimedResult, ResultStore } from '../core/result-store.js';

/** The time for which Redis remembers that a run began before its result was forgotten. Longer than any run. */
const FORGOTTEN_MS = 24 * 60 * 60 * 1_000;

/** Results on one Redis, or in memory. Each step is one script, or a `GET`. */
export class RedisResultStore implements ResultStore {
  constructor(private readonly store: ScriptLockStore) {}

  async read(resource: string): Promise<string | undefined> {
    try {
      const text = await this.store.run(READ_RESULT, [this.store.keys.result(resource)], []);
      // A forgotten result of a run that may not have ended.
      return typeof text === 'string' && !text.startsWith('!') ? text : undefined;
    } catch (error) {
      // Another program's key. The next result takes its place.
      if (error instanceof LockStoreError && error.message.startsWith('WRONGTYPE')) return '';
      throw error;
    }
  }

  async claim({ resource, id, label }: LockOwner, leaseMs: number, unreadable?: string): Promise<ClaimedResult> {
    const { keys, clientId } = this.store;
    const lock = keys.lock(resource);
    const ofCall = [lock, keys.waiters(resource), keys.fence(lock), keys.result(resource)];
    let bytesHash = '';
    const read = (reply: unknown): ClaimedResult => {
      if (!Array.isArray(reply) || reply[0] !== 'kept') return readAcquireReply(reply, clientId);
      const [status, result, hash = ''] = reply as ['kept', string, string?];
      bytesHash = hash;
      return { status, result };
    };
    const ignoring = (hash: string): Promise<ClaimedResult> =>
      this.store.run(
        CLAIM_RESULT,
        ofCall,
        label === undefined ? [id, leaseMs, hash] : [id, leaseMs, hash, label],
        read,
      );
    if (unreadable === undefined) return ignoring('');
    const reply = await ignoring(createHash('sha1').update(unreadable).digest('hex'));
    // Another program has written bytes that are not UTF-8: the text that was read of them has another hash.
    return reply.status === 'kept' && reply.result === unreadable ? ignoring(bytesHash) : reply;
  }

  keep({ resource, id }: LockOwner, result: string, ttlMs: number): Promise<boolean> {
    return this.store.passOn(KEEP_RESULT, resource, [id, ttlMs, result], false, [this.store.keys.result(resource)]);
  }

  async forget(resource: string): Promise<void> {
    const { keys } = this.store;
    await this.store.run(FORGET_RESULT, [keys.lock(resource), keys.result(resource)], [FORGOTTEN_MS]);
  }
}
