import { tellMissing } from '../../../lib/extras/cli/frame/roll.js';
import { fleetReport } from '../../features/fleet/fleet-reports.js';

it('a scan that was cut is a partial result, which stderr explains', () => {
  const notes: string[] = [];
  const output = { note: (line: string) => void notes.push(line) };
  expect(tellMissing(fleetReport(), output, null)).toBe(false);
  expect(tellMissing(fleetReport({ isScanCut: true }), output, null)).toBe(true);
  expect(notes).toEqual(['There are more than 10000 locks: only some were checked in Redis.']);
});
