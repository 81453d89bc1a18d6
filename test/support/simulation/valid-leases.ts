import assert from 'node:assert/strict';
import type { Hold } from '../../../lib/kernel/holding/hold.js';
import type { MemoryMember, MemoryServer } from '../../../lib/memory/memory-server.js';
import { fencingTickOf } from '../../../lib/kernel/store/fencing-token.js';
import { isSharedMode, type LockMode } from '../../../lib/kernel/api/lock-options.js';

/** Returns true if leases in these modes exclude each other. */
export function isExcluding(one: LockMode, other: LockMode): boolean {
  return one !== other || !isSharedMode(one);
}

/** The leases that are valid at one moment, by resource. They may be valid together, and the store has them as well. */
export class ValidLeases {
  readonly #holds = new Map<string, Hold[]>();
  /** The store's members of each resource. */
  readonly #members = new Map<string, readonly MemoryMember[]>();

  constructor(
    private readonly server: MemoryServer,
    /** The most permits that a semaphore ever had. */
    private readonly permitsOf: (resource: string) => number,
  ) {}

  /** @throws AssertionError */
  add(hold: Hold): void {
    const { resource } = hold.owner;
    const others = this.#holds.get(resource) ?? [];
    for (const { mode } of others) {
      assert.ok(!isExcluding(hold.mode, mode), `two leases of ${resource} are valid at once: ${mode}, ${hold.mode}`);
    }
    this.#checkStored(hold);
    const all = [...others, hold];
    this.#holds.set(resource, all);
    if (!hold.storeLease.permits) return;
    const used = all.reduce((sum, each) => sum + permitsOf(each), 0);
    assert.ok(used <= this.permitsOf(resource), `${used} permits of ${resource} are held`);
  }

  #checkStored(hold: Hold): void {
    const { resource, id: owner } = hold.owner;
    const members = this.#members.get(resource) ?? this.server.members(resource);
    this.#members.set(resource, members);
    const member = members.find((each) => each.owner === owner);
    assert.ok(member, `the store does not have the lock of ${resource} that ${owner} believes to have`);
    // A downgraded lease reads from then on, whenever the store learns about it.
    assert.ok(
      member.mode === hold.mode || (member.mode === 'write' && hold.mode === 'read'),
      'it has it in another mode',
    );
    // It has all that it counts on. It may have more: the process gives those up before the store learns about it.
    assert.ok(member.permits >= permitsOf(hold), `the store has fewer permits for it than ${permitsOf(hold)}`);
    assert.equal(fencingTickOf(hold.fencingToken), fencingTickOf(member.fencingToken));
    // The clocks differ by less than 1 %.
    const leftMs = hold.remainingMs() / 1.01;
    assert.ok(leftMs <= member.ttlMs, `the lease of ${resource} is trusted for longer than the lock`);
  }
}

/** The permits that it counts on; 1 for a lock. */
function permitsOf({ storeLease: { permits, permitsLeft } }: Hold): number {
  return permitsLeft ?? permits?.count ?? 1;
}
