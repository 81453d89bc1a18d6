import { CanActivate, ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';

export interface Visited {
  readonly headers: Readonly<Record<string, string>>;
}

@Injectable()
export class SignedInGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<Visited>();
    if (headers['x-user'] === undefined) throw new UnauthorizedException();
    return true;
  }
}
