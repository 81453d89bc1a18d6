import { PARTS } from '../../scripts/test-parts.mjs';

describe('npm run test:long', () => {
  it('runs with their larger amounts the tests on servers, in browsers and in stacks that have them', () => {
    const { amounts } = PARTS['long']!();
    expect(amounts).toEqual(
      expect.arrayContaining([
        'test/console/browser/scale.slow.test.ts',
        'test/redis/processes/newest-first.slow.test.ts',
        'test/stacks/databases/fence/frozen.slow.test.ts',
      ]),
    );
    expect(amounts).not.toContain('test/redis/processes/semaphore.test.ts');
  });
});
