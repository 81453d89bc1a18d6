import { createHash } from 'node:crypto';
import {
  BadRequestException,
  type CallHandler,
  ConflictException,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UnprocessableEntityException,
} from '@nestjs/common';
import { key, LockBusyError, RedisLockService } from 'nestjs-redis-lock';
import { lastValueFrom, type Observable, of } from 'rxjs';

const hashOf = (value: unknown) =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url');

type Request = Record<'method' | 'url', string> & {
  headers: Partial<Record<string, string>>;
  body: unknown;
};
type Response = { statusCode: number; status(code: number): unknown };

@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  constructor(private readonly locks: RedisLockService) {}

  async intercept(
    context: ExecutionContext,
    next: CallHandler<unknown>,
  ): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<Request>();
    const response = context.switchToHttp().getResponse<Response>();
    const sent = request.headers['idempotency-key'] ?? '';
    if (!/^[\x21-\x7e]{1,255}$/.test(sent))
      throw new BadRequestException('Send an Idempotency-Key');
    // The key is per user: another user's key must never match.
    const user = hashOf(request.headers['authorization'] ?? '');
    const asked = hashOf([request.method, request.url, request.body]);
    const name = key`idempotency:${user}:${sent}`;
    const options = { resultTtlMs: 86_400_000, waitMs: 0 };
    try {
      const first = await this.locks.once(name, options, async () => {
        const body = await lastValueFrom(next.handle());
        return { asked, status: response.statusCode, body };
      });
      if (first.asked !== asked)
        throw new UnprocessableEntityException(
          'Another request has this key',
        );
      response.status(first.status);
      return of(first.body);
    } catch (error) {
      const isOurs =
        error instanceof LockBusyError && error.resource === `once:${name}`;
      if (!isOurs) throw error;
      throw new ConflictException('The first request is still running');
    }
  }
}
