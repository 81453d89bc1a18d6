import { changesBetween } from '../../../lib/extras/cli/commands/watch.js';
import type { FleetInstance, FleetReport } from '../../../lib/features/fleet/core/roll/lock-fleet.js';

const lease = (resource: string, fencingToken: number, heldMs = 0): FleetInstance['held'][number] => ({
  resource,
  mode: 'exclusive',
  fencingToken,
  heldMs,
  leftMs: 10_000,
  group: 'Orders.pay',
  isRenewed: true,
  isLeaked: false,
});
const wait = (resource: string, call: number, waitedMs = 0): FleetInstance['waiting'][number] => ({
  call,
  resource,
  mode: 'exclusive',
  waitedMs,
  group: 'Orders.pay',
  holds: [],
});
const instance = (instanceId: string, has: Partial<FleetInstance> = {}): FleetInstance =>
  ({
    instanceId,
    held: [],
    waiting: [],
    leaderships: [],
    lastMinute: null,
    more: { held: 0, waiting: 0, leaderships: 0, jobs: 0 },
    ...has,
  }) as unknown as FleetInstance;
const roll = (...instances: FleetInstance[]): FleetReport => ({
  askedAt: 5,
  asked: instances.length,
  completeness: 'complete',
  instances,
  silent: [],
  unreadable: 0,
  unlisted: [],
  isScanCut: false,
  deadlocks: [],
  service: 'default',
  subscribed: [],
});
const between = (before: FleetReport, after: FleetReport) =>
  changesBetween(before, after).map(({ event, resource }) => [event, resource]);

it('a wait that ends with a grant is two changes, at the time of the second poll', () => {
  const waits = roll(instance('a', { waiting: [wait('x', 1)] }));
  const holds = roll(instance('a', { held: [lease('x', 7)] }));
  const nothing = roll(instance('a'));
  expect(changesBetween(nothing, waits)).toEqual([
    { at: 5, event: 'waits', instance: 'a', resource: 'x', work: 'Orders.pay', forMs: 0 },
  ]);
  expect(changesBetween(waits, holds)).toEqual([
    { at: 5, event: 'granted', instance: 'a', resource: 'x', fencingToken: 7, work: 'Orders.pay' },
  ]);
  expect(between(holds, nothing)).toEqual([['released', 'x']]);
  expect(between(waits, nothing)).toEqual([['gaveUp', 'x']]);
  expect(between(holds, holds)).toEqual([]);
});

it('another lease of the same resource is a release and a grant', () => {
  const first = roll(instance('a', { held: [lease('x', 7)] }));
  expect(between(first, roll(instance('a', { held: [lease('x', 39)] })))).toEqual([
    ['granted', 'x'],
    ['released', 'x'],
  ]);
  expect(between(first, roll(instance('a'), instance('b', { held: [lease('x', 39)] })))).toEqual([
    ['released', 'x'],
    ['appeared', undefined],
    ['granted', 'x'],
  ]);
});

it('an instance that does not answer has released nothing', () => {
  const both = roll(instance('a', { held: [lease('x', 7)] }), instance('b'));
  expect(between(both, roll(instance('b')))).toEqual([['gone', undefined]]);
});

it('a lock that did not fit into an answer is not reported as released', () => {
  const full = { held: 1, waiting: 1, leaderships: 0, jobs: 0 };
  const before = roll(instance('a', { held: [lease('x', 7)], waiting: [wait('y', 1)] }));
  expect(between(before, roll(instance('a', { more: full })))).toEqual([]);
});

it('lost leases and leaderships are reported', () => {
  const counts = (lost: number) => ({ forMs: 1, acquired: 0, notAcquired: 0, lost, timedOut: 0 });
  const leads = (isLeader: boolean) => [{ name: 'mailer', isLeader, elections: 1 }];
  const before = roll(instance('a', { lastMinute: counts(1), leaderships: leads(false) }));
  const after = roll(instance('a', { lastMinute: counts(3), leaderships: leads(true) }));
  expect(changesBetween(before, after)).toEqual([
    { at: 5, event: 'lost', instance: 'a', count: 2 },
    { at: 5, event: 'leads', instance: 'a', resource: 'mailer' },
  ]);
  // The window moves on, and the events of its first second drop out.
  expect(between(after, before)).toEqual([['leadsNoMore', 'mailer']]);
});
