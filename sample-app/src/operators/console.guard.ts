import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { isOperatorKey } from './operators.guard.js';

/** A request of Express, with what this guard needs of it. */
interface ConsoleRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/**
 * Lets in a browser whose user states a name, and the key as password. In your application this is whatever guards your other
 * admin pages.
 */
@Injectable()
export class ConsoleGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    if (isOperatorKey(credentialsOf(http.getRequest<ConsoleRequest>()).password)) return true;
    http.getResponse<{ setHeader(name: string, value: string): void }>().setHeader('WWW-Authenticate', 'Basic');
    throw new UnauthorizedException();
  }
}

/** The name that the log of an action has. */
export function operatorOf(request: ConsoleRequest): string | undefined {
  return credentialsOf(request).name;
}

function credentialsOf({ headers: { authorization = '' } }: ConsoleRequest): { name?: string; password?: string } {
  const [, encoded = ''] = /^Basic (.+)$/i.exec(authorization) ?? [];
  const [, name, password] = /^([^:]+):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  return { ...(name !== undefined && { name }), ...(password !== undefined && { password }) };
}
