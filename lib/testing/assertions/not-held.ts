import type { Holder } from '../../core/api/holder.js';
import { checkResource } from '../../core/api/resource.js';
import type { LockState } from '../../core/store/lock-state.js';
import { quote } from '../../core/util/quoted.js';
import { settle } from '../../core/util/promises.js';
import { failed, type LocksUnderTest } from './locks-under-test.js';

/** See `TestLocks.expectNotHeld`. */
export async function expectNotHeld(locks: LocksUnderTest, resource: string): Promise<void> {
  const name = checkResource(resource, 'expectNotHeld');
  await settle();
  const held = leasesOf(locks).filter(({ state }) => state.resource === name);
  if (held.length === 0) return;
  const lines = held.map((lease) => describe(locks, lease));
  throw failed(expectNotHeld, `${quote(name)} is held:\n${lines.join('\n')}`, { actual: 'held', expected: 'not held' });
}

/** See `TestLocks.expectNothingHeld`. */
export async function expectNothingHeld(locks: LocksUnderTest): Promise<void> {
  await settle();
  // A campaign leads for as long as its application runs.
  const held = leasesOf(locks).filter(({ state }) => !state.resource.startsWith('leader:'));
  const unmet = locks.unmetFailures();
  const told = [stillHeld(locks, held), metNothing(unmet)].filter((text) => text !== undefined);
  if (told.length === 0) return;
  const actual = [...held.map(({ state }) => state.resource), ...unmet];
  throw failed(expectNothingHeld, told.join('\n\n'), { actual, expected: [] });
}

function stillHeld(locks: LocksUnderTest, held: readonly HeldLease[]): string | undefined {
  if (held.length === 0) return undefined;
  const lines = held.map((lease) => describe(locks, lease));
  const [what, it] = held.length === 1 ? ['A lease is', 'it'] : [`${held.length} leases are`, 'each'];
  return `${what} still held:\n${lines.join('\n')}\nRelease ${it} in the test or in the code: await using lease = …, or finally.`;
}

/** A test that plans a failure tests nothing where it does not happen. */
function metNothing(unmet: readonly string[]): string | undefined {
  if (unmet.length === 0) return undefined;
  const what =
    unmet.length === 1 ? 'A failure that the test planned has' : `${unmet.length} failures that the test planned have`;
  const lines = unmet.map((text) => `  ${text}`);
  return `${what} met no command:\n${lines.join('\n')}\nLet the test do what sends such a command, or leave failNext out.`;
}

interface HeldLease {
  readonly state: LockState;
  readonly holder: Holder;
}

/** Those that are not released. One that stays taken for its `minHoldMs` is. */
function leasesOf(locks: LocksUnderTest): HeldLease[] {
  return locks
    .states()
    .flatMap((state) => state.holders.filter(({ isKept }) => !isKept).map((holder) => ({ state, holder })));
}

function describe(locks: LocksUnderTest, { state, holder }: HeldLease): string {
  const { resource, mode } = state;
  const { instanceId, fencingToken } = holder;
  const site = locks.callSiteOf(resource, fencingToken);
  const isOwn = instanceId === locks.instanceId;
  const by = isOwn ? 'this application' : `the instance ${quote(instanceId)}`;
  const where = site === undefined ? (isOwn ? 'by work that still runs' : '') : `acquired at ${site}`;
  return `  ${quote(resource)} (${mode}, token ${fencingToken}) by ${by}${where && `, ${where}`}`;
}
