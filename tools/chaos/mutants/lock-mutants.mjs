import { SCRIPTS } from './mutate.mjs';

/**
 * Bugs that people have written into locks. The hunt proves that a checker sees each.
 *
 * @typedef {import('./mutate.mjs').Mutant & {
 *   readonly scenario: 'rush' | 'standstill' | 'suspended' | 'cut off' | 'deaf' | 'patient' | 'outage' | 'long outage'
 * | 'crowd' | 'intruder' | 'queue' | 'killed' | 'all killed' | 'old snapshot' | 'power failure' | 'refused',
 *   readonly work?: Partial<import('../world/world.js').Work>,
 *   readonly lastsMs?: number,
 *   readonly caughtBy: readonly string[],
 * }} LockMutant `scenario`: the world in which it does harm; `work`: less work, if that shows it sooner;
 *   `lastsMs`: the duration, if it differs from the scenario's;
 *   `caughtBy`: the rules that must catch it
 *
 * @type {readonly LockMutant[]}
 */
export const LOCK_MUTANTS = [
  {
    name: 'release-of-anybodys',
    what: 'a release, or a withdrawal, does not look whose the lock is',
    file: SCRIPTS,
    find: "local isOthers = holder == false or (holder and holder ~= '' and holder ~= owner)",
    replace: 'local isOthers = false',
    scenario: 'rush',
    work: { callers: 1, longHolds: 30, ways: { exclusive: 1, hasty: 1, aborted: 1 } },
    caughtBy: ['exclusion'],
  },
  {
    name: 'renewal-takes-over',
    what: 'a renewal does not look whose the lock is, and writes its own owner into it',
    file: SCRIPTS,
    find: "local isUsual = type(text) == 'string' and string.sub(text, 1, #known) == known",
    replace:
      "if type(text) == 'string' then\n" +
      "  text = owner .. string.match(text, ' %d+ %d+.*$')\n" +
      "  redis.call('SET', lockKey, text, 'KEEPTTL')\n" +
      'end\n' +
      "local isUsual = type(text) == 'string' and string.sub(text, 1, #known) == known",
    scenario: 'cut off',
    caughtBy: ['exclusion'],
  },
  {
    name: 'token-not-increased',
    what: 'tokens grow once in a second, and not with each grant',
    file: SCRIPTS,
    find: 'local token = (half - 1) * 32',
    times: 4,
    replace: 'local token = math.floor(half / 100000) * 100000 * 32',
    scenario: 'rush',
    work: { ways: { exclusive: 1 } },
    caughtBy: ['tokens'],
  },
  {
    name: 'token-of-the-process',
    what: 'a token is counted by the process that is granted, not by the script that grants',
    file: 'kernel/holding/store-lease.js',
    find: 'this.token = token;',
    replace: 'this.token = StoreLease.minted = (StoreLease.minted ?? 0) + 32;',
    scenario: 'rush',
    caughtBy: ['tokens'],
  },
  {
    name: 'validity-from-arrival',
    what: 'a lease is trusted from the moment its grant arrived, not from the one it was asked for',
    file: 'kernel/holding/store-lease.js',
    find: 'return sentAt + leaseMs - (leaseMs * 0.01 + 2);',
    replace: 'return performance.now() + leaseMs - (leaseMs * 0.01 + 2);',
    scenario: 'standstill',
    caughtBy: ['exclusion', 'losses'],
  },
  {
    name: 'loss-by-flag',
    what: 'a lease is held until a timer has noted that it is lost: nobody compares its deadline',
    file: 'kernel/holding/hold.js',
    find: 'this.lose(this.reasonAtDeadline());\n        return false;',
    replace: 'setTimeout(() => this.lose(this.reasonAtDeadline()));\n        return true;',
    scenario: 'standstill',
    caughtBy: ['exclusion', 'losses'],
  },
  {
    name: 'no-heartbeat',
    what: 'a waiter relies on the message that it is granted: its place is not kept, and it never asks again',
    file: 'kernel/acquiring/store-waiter.js',
    find: 'this.askLater(Math.min(pauseMs, freeInMs), now);',
    replace: 'places.pause(this);\n        this.askLater(Infinity);',
    scenario: 'deaf',
    caughtBy: ['liveness'],
  },
  {
    name: 'grant-of-the-withdrawn',
    what: 'who gives up tells nobody, and a lock that is granted to it all the same is not passed on',
    file: 'kernel/store/orphan-releases.js',
    find: 'this.#withdrawn.set(owner, before);',
    replace: 'return;',
    scenario: 'patient',
    work: { ways: { exclusive: 1, aborted: 1 } },
    caughtBy: ['liveness'],
  },
  {
    name: 'a-permit-too-many',
    what: 'one permit more is given than there are',
    file: SCRIPTS,
    find: 'lock.used + request.count <= totalFor(lock, request)',
    replace: 'lock.used + request.count <= totalFor(lock, request) + 1',
    scenario: 'rush',
    work: { ways: { permits: 1 } },
    caughtBy: ['permits'],
  },
  {
    name: 'reader-ignores-writer',
    what: 'a reader that asks is let in beside a writer',
    file: SCRIPTS,
    find: "local isFree = not ARGV[7] and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0",
    replace:
      "local isFree = not ARGV[7] and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0\n" +
      "  or ARGV[4] == 'read' and redis.pcall('HGET', KEYS[1], 'mode') == 'write'",
    scenario: 'rush',
    work: { callers: 1, longHolds: 40, ways: { read: 1, write: 1 } },
    caughtBy: ['exclusion'],
  },
  {
    name: 'writer-ignores-readers',
    what: 'a writer whose turn it is does not wait for those who read',
    file: SCRIPTS,
    find: "if lock.mode == 'read' then return request.mode == 'read' end",
    replace: "if lock.mode == 'read' then return true end",
    scenario: 'rush',
    work: { longHolds: 10, ways: { read: 1, write: 1 } },
    caughtBy: ['exclusion'],
  },
  {
    name: 'acquire-counts-twice',
    what: 'permits are taken once more when the command that took them is sent again',
    file: SCRIPTS,
    find: 'held = renewMember(lockKey, owner, leaseMs)',
    replace: 'held = nil',
    scenario: 'patient',
    work: { ways: { permits: 1 } },
    caughtBy: ['liveness'],
  },
  {
    name: 'newest-first',
    what: 'the waiter that came last is granted first',
    file: SCRIPTS,
    find: "local head = redis.pcall('ZRANGE', KEYS[2], '0', '1')",
    times: 2,
    replace:
      "local length = redis.call('ZCARD', KEYS[2]) / 3\n" +
      "  local head = redis.pcall('ZRANGE', KEYS[2], 2 * length - 2, 2 * length - 1)",
    scenario: 'queue',
    caughtBy: ['fifo'],
  },
  {
    name: 'inner-release-frees',
    what: 'when an inner lease of a reentrant holder ends, Redis is told that all of them do',
    file: 'kernel/lease/single-lease.js',
    find: 'tellDepth(hold, deps);',
    replace: 'await deps.store.release(hold.owner);',
    scenario: 'rush',
    work: { ways: { reentrant: 1 } },
    caughtBy: ['exclusion'],
  },
  {
    name: 'inner-release-ends-all',
    what: 'when an inner lease of a reentrant holder ends, the outer ones are over as well',
    file: 'kernel/lease/single-lease.js',
    find: 'if (hold.depth === 0)\n            return releaseHold(hold, deps);',
    replace: 'return releaseHold(hold, deps);',
    scenario: 'rush',
    work: { ways: { reentrant: 1 } },
    caughtBy: ['reentry'],
  },
  {
    name: 'lock-without-expiry',
    what: 'the lock of a waiter that is granted has no expiry before its first renewal',
    file: SCRIPTS,
    // Each way to be granted: by release and by rotate, of the usual first waiter, and by all else.
    find: ", 'PX', leaseMs)",
    times: 3,
    replace: ')',
    scenario: 'killed',
    caughtBy: ['liveness'],
  },
  {
    name: 'queue-without-expiry',
    what: 'a queue whose waiters have all died stays for ever',
    file: SCRIPTS,
    // Also where a place is kept: on a busy machine a waiter lives to do so before all are killed.
    find: "redis.call('PEXPIRE', queueKey, leaseMs)",
    times: 3,
    replace: "redis.call('PTTL', queueKey)",
    scenario: 'all killed',
    caughtBy: ['leftovers'],
  },
  {
    name: 'connection-left-open',
    what: 'the connection that listens is not closed with the application',
    file: 'redis/topology/primary-connection.js',
    find: 'this.subscriber.close();',
    replace: '',
    scenario: 'rush',
    lastsMs: 300,
    caughtBy: ['leftovers'],
  },
  {
    name: 'gives-up-early',
    what: 'who waits gives up after half of the time it was given',
    file: 'kernel/acquiring/pending-call.js',
    find: 'givesUpAt(this.startedAt, this.options,',
    replace: 'givesUpAt(this.startedAt, { ...this.options, waitMs: this.options.waitMs / 2 },',
    scenario: 'rush',
    work: { ways: { exclusive: 1, hasty: 2 } },
    caughtBy: ['errors'],
  },
  {
    name: 'outage-told-as-busy',
    what: 'once somebody held it, the resource is busy for ever, also when Redis has died since',
    file: 'kernel/store/ask.js',
    find: 'this.#isConcluded = true;',
    replace: "if (this.last === 'busy') return;\n        this.#isConcluded = true;",
    scenario: 'outage',
    caughtBy: ['outcomes'],
  },
  {
    name: 'long-outage-told-as-busy',
    what: 'the same, in waits that end before their places would be kept',
    file: 'kernel/store/ask.js',
    find: 'this.#isConcluded = true;',
    replace: "if (this.last === 'busy') return;\n        this.#isConcluded = true;",
    scenario: 'long outage',
    caughtBy: ['outcomes'],
  },
  {
    name: 'line-forgets',
    what: 'whoever asks next for a line knows nothing of what the one before has heard',
    file: 'kernel/acquiring/local-queue.js',
    find: 'return (this.waiter = new StoreWaiter(',
    replace: 'this.#log = new AttemptLog();\n        return (this.waiter = new StoreWaiter(',
    scenario: 'crowd',
    caughtBy: ['outcomes'],
  },
  {
    name: 'believes-any-message',
    what: 'a grant message is believed by whoever reads it, without a look for whom it was made',
    file: 'redis/inbox.js',
    find: 'fencingToken: Number(token), sentAt: Number(sentAt), isFor }',
    replace: 'fencingToken: Number(token), sentAt: Number(sentAt), isFor: () => true }',
    scenario: 'intruder',
    caughtBy: ['exclusion', 'tokens', 'writes', 'losses'],
  },
  {
    name: 'suspend-unnoticed',
    what: 'a monotonic clock that has stood still is believed',
    file: 'kernel/util/clock.js',
    find: 'if (jumpMs > JUMP_MS || jumpMs < -JUMP_MS) {',
    replace: 'if (Number.isNaN(jumpMs)) {',
    scenario: 'suspended',
    caughtBy: ['exclusion', 'tokens', 'writes', 'losses'],
  },
  {
    name: 'release-grants-in-quarantine',
    what: 'in a quarantine only what asks is held up: what frees grants to the queue, and the message is believed',
    file: 'redis/redis-lock-store.js',
    find: 'const connection = createConnection(options, stated);',
    replace:
      'const connection = createConnection(options, stated);\n' +
      '        const held = connection.scripts;\n' +
      '        const send = held.send.bind(held);\n' +
      '        held.send = (client, call, fail) =>\n' +
      '            call.script.frees ? held.scripts.send(client, call, fail) : send(client, call, fail);',
    and: { find: 'isQuarantined: options.restartQuarantineMs !== undefined', replace: 'isQuarantined: false' },
    scenario: 'old snapshot',
    caughtBy: ['exclusion'],
  },
  {
    name: 'any-log-is-whole',
    what: 'a Redis with an append-only file counts as one that has forgotten nothing',
    file: 'redis/script/restart-quarantine.js',
    find: '(await hasWholeLog(client))',
    replace: 'true',
    scenario: 'power failure',
    caughtBy: ['exclusion'],
  },
  {
    name: 'refusal-is-final',
    what: 'a release that Redis has refused is not sent again',
    file: 'kernel/store/ask-until.js',
    find: 'if (isRefused && (refused === undefined || refused.isClosed))',
    replace: 'if (isRefused)',
    scenario: 'refused',
    work: { ways: { exclusive: 1 } },
    caughtBy: ['refusals'],
  },
  {
    name: 'ghost-keeps-its-grant',
    what: 'who gives up while Redis refuses leaves its place, and what it is granted is given back by nobody',
    file: 'kernel/store/orphan-releases.js',
    find: 'const send = () => (before ? this.#inOrder(before, owner) : this.#release(owner));',
    replace:
      'let isRefused = false;\n' +
      '        const send = () => {\n' +
      '            if (isRefused && !this.#retained.has(owner)) return undefined;\n' +
      '            const sent = before ? this.#inOrder(before, owner) : this.#release(owner);\n' +
      "            sent.catch((error) => (isRefused = error.failure === 'refused'));\n" +
      '            return sent;\n' +
      '        };',
    scenario: 'refused',
    caughtBy: ['refusals'],
  },
];
