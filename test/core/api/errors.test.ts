import * as errors from '../../../lib/core/api/errors.js';
import { LeaseLostError, LockReentryError } from '../../../lib/core/api/lease-errors.js';

describe('errors', () => {
  const all = [
    new errors.LockBusyError('stock', 1, 900),
    new errors.LockTimeoutError('stock', 500, 3, 900),
    new errors.LockAbortedError('stock', undefined),
    new LeaseLostError('stock', 'expired', 32),
    LockReentryError.waitingForItself('stock', 'exclusive', 'exclusive'),
    LockReentryError.foreignRelease('stock'),
    LockReentryError.upgrade('stock'),
    LockReentryError.waitingForOwnPermits('stock', 2, 2, 3),
    LockReentryError.sharedByOthers('stock', 'transferred'),
    new errors.LockUnavailableError('stock', 'acquire', 'failed', new Error('READONLY')),
    new errors.LockShutdownError('stock'),
  ];

  it.each(all.map((error) => [error.name, error] as const))(
    '%s names the resource, its code and itself',
    (name, error) => {
      expect(error).toBeInstanceOf(errors.LockError);
      expect(error).toBeInstanceOf(Error);
      expect(error.resource).toBe('stock');
      expect(error.message).toContain('"stock"');
      expect(error.code).toMatch(/^(LOCK|LEASE)_[A-Z_]+$/);
      expect(error.constructor.name).toBe(name);
      expect(error.stack).toContain(name);
    },
  );

  it('have one code for each class', () => {
    const codes = new Map(all.map((error) => [error.code, error.name]));
    expect(new Set(codes.values()).size).toBe(codes.size);
  });

  it('explain every reason of a loss', () => {
    const reasons = ['expired', 'takenOver', 'notRenewed', 'maxHold', 'shutdown', 'released'] as const;
    const messages = reasons.map((reason) => new LeaseLostError('stock', reason, 1).message);
    expect(new Set(messages).size).toBe(reasons.length);
    for (const message of messages) expect(message).not.toContain('undefined');
  });

  it('quote hostile names on one line, and cut long ones', () => {
    const { message } = new errors.LockBusyError(`evil\n\u001b[31m${'x'.repeat(500)}`, 1, 0);
    expect(message).not.toMatch(/[\n\u001b]/);
    expect(message.length).toBeLessThan(300);
  });
});
