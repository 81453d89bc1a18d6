import { InvalidLockOptionsError, RedisLockModule } from 'nestjs-redis-lock';

/** Options, and what the message must say. */
const bad: [object, string][] = [
  [{ durability: {} }, 'durability.replicas must be an integer from 1 to 5 (replicas), not undefined.'],
  [{ durability: { replicas: 0 } }, 'durability.replicas must be an integer from 1 to 5 (replicas), not 0.'],
  [{ durability: { replica: 1 } }, 'durability does not know the option "replica". Did you mean replicas?'],
  [{ durability: 1 }, 'durability must be an object, not 1.'],
  [
    { durability: { replicas: 1, timeoutMs: 1_000 } },
    'durability.timeoutMs must be less than attemptTimeoutMs (1000), not 1000: otherwise each attempt would end first.',
  ],
  [
    { durability: { replicas: 1 }, leaseMs: 150 },
    'durability.timeoutMs must be less than a third of leaseMs (150), not 50: a lease is renewed after a third of it, and the renewal must be confirmed in time.',
  ],
  [
    { restartQuarantineMs: 14_999 },
    'restartQuarantineMs must be the longest lease of any application, so at least leaseMs (15000), not 14999.',
  ],
  [{ persistence: 'aof', restartQuarantineMs: 30_000 }, 'persistence must be one of \'always\', not "aof".'],
  [{ persistence: 'always' }, 'persistence has no effect without restartQuarantineMs'],
  [{ persistence: 'always', restartQuarantineMs: 0 }, 'persistence has no effect without restartQuarantineMs'],
  [{ restartQuarantineMs: Infinity }, 'restartQuarantineMs must be an integer from 50 to 86400000 (milliseconds)'],
];

describe('RedisLockModule.forRoot refuses at once what could not survive a loss of data', () => {
  it.each(bad)('%j', (options, message) => {
    const register = (): unknown => RedisLockModule.forRoot({ connection: 'memory:', ...options } as never);
    expect(register).toThrow(InvalidLockOptionsError);
    expect(register).toThrow(message);
  });

  it('and takes what can', () => {
    const durability = { replicas: 5, timeoutMs: 999 };
    const options = { connection: 'memory:', durability, restartQuarantineMs: 30_000, persistence: 'always' } as const;
    expect(() => RedisLockModule.forRoot(options)).not.toThrow();
    const quorum = { connections: ['redis://a', 'redis://b', 'redis://c'] };
    expect(() => RedisLockModule.forRoot({ quorum, persistence: 'always' })).not.toThrow();
  });
});
