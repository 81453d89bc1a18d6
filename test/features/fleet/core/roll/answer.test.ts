import { readAnswer, writeAnswer } from '../../../../../lib/features/fleet/core/roll/answer.js';
import { fleetInstance, heldLease } from '../../fleet-reports.js';

const { isThisInstance: _, ...answer } = fleetInstance('api-1', {
  held: [
    heldLease('x', 32, { isLeaked: true, callSite: 'run (dist/imports.js:8:5)' }),
    heldLease('y', 64, { isLeaked: true }),
    heldLease('z', 96, { callSite: 'run (dist/orders.js:4:2)' }),
  ],
  leaderships: [{ name: 'mailer', isLeader: true, elections: 7 }],
  lostLately: 3,
  timeouts: [{ resource: 'x', calls: 2 }],
  lockOrders: [
    [
      { holds: 'a', wants: 'b', callSite: 'move (dist/bank.js:4:2)' },
      { holds: 'b', wants: 'a' },
    ],
  ],
});

it('an answer is read as it was written', () => {
  expect(readAnswer(writeAnswer(answer), 'api-1/secret')).toEqual(answer);
});

it('an answer of a version without elections, leaks, losses, timeouts and lock orders is read without them', () => {
  const {
    x: _lost,
    t: _timeouts,
    o: _orders,
    l: leaderships,
    k: leases,
    ...older
  } = JSON.parse(writeAnswer(answer)) as {
    [name: string]: unknown[];
  };
  const text = JSON.stringify({
    ...older,
    l: leaderships!.map((row) => (row as unknown[]).slice(0, 2)),
    k: leases!.map((row) => (row as unknown[]).slice(0, 7)),
  });
  const read = readAnswer(text, 'api-1/secret');
  expect(read).toMatchObject({
    lostLately: 0,
    timeouts: [],
    lockOrders: [],
    leaderships: [{ name: 'mailer', elections: 0 }],
  });
  expect(read!.held.map(({ isLeaked }) => isLeaked)).toEqual([false, false, false]);
});
