import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from '../../../../../lib/features/fleet/core/roll/instance-report.js';

describe('the version that an instance reports', () => {
  it('is the one of package.json', () => {
    const file = join(import.meta.dirname, '../../../../../package.json');
    expect(VERSION).toBe((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version);
  });
});
