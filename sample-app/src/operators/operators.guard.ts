import { createHash, timingSafeEqual } from 'node:crypto';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { settings } from '../settings.js';

/**
 * Requires the operator's key; without a configured key, it refuses everyone. Your application uses its own guard for
 * admin routes.
 */
@Injectable()
export class OperatorsGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>();
    return isOperatorKey(headers['x-operator-key']);
  }
}

export function isOperatorKey(given: string | undefined): boolean {
  if (settings.operatorKey === '' || given === undefined) return false;
  return timingSafeEqual(digest(given), digest(settings.operatorKey));
}

/** Of one length, which a comparison in constant time needs. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
