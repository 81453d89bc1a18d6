import {
  type CanActivate,
  type ExecutionContext,
  Inject,
  Injectable,
  ParseIntPipe,
  type Type,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { Args, GqlExecutionContext, Int, Mutation, Query, Resolver } from '@nestjs/graphql';
import {
  DistributedLock,
  key,
  LockBusyError,
  LockExceptionFilter,
  LockHandler,
  LockUnavailableError,
  RedisLockService,
} from 'nestjs-redis-lock';
import { gate } from '../../support/expect/tracked.js';

@Injectable()
class KnownUser implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { req } = GqlExecutionContext.create(context).getContext<{ req: { headers: Record<string, string> } }>();
    return req.headers['x-user'] !== undefined;
  }
}

const argsOf = <T>(context: ExecutionContext): T => GqlExecutionContext.create(context).getArgs() as T;

const ofArgs = (context: ExecutionContext): string => key`handled:${argsOf<{ id: number }>(context).id}`;

/** Both decorators, above and below the ones of GraphQL. */
function ordersOf(operation: typeof Query, kind: string): Type {
  const as = (name: string): MethodDecorator => operation(() => String, { name: `${kind}${name}` });
  const id = (): ParameterDecorator => Args('id', { type: () => Int }, ParseIntPipe);

  @Resolver()
  class Orders {
    @Inject() readonly locks!: RedisLockService;

    @as('LockBelow')
    @UseGuards(KnownUser)
    @DistributedLock((id: number) => key`locked:${id}`)
    async lockBelow(@id() _id: number): Promise<string> {
      return this.#held();
    }

    @DistributedLock((id: number) => key`locked:${id}`)
    @UseGuards(KnownUser)
    @as('LockAbove')
    async lockAbove(@id() _id: number): Promise<string> {
      return this.#held();
    }

    @as('HandlerBelow')
    @UseGuards(KnownUser)
    @LockHandler(ofArgs)
    handlerBelow(@id() _id: number): string {
      return this.#held();
    }

    @LockHandler(ofArgs)
    @UseGuards(KnownUser)
    @as('HandlerAbove')
    handlerAbove(@id() _id: number): string {
      return this.#held();
    }

    @LockHandler(ofArgs)
    @as('Both')
    @UseGuards(KnownUser)
    @DistributedLock((id: number) => key`locked:${id}`)
    async both(@id() _id: number): Promise<string> {
      return this.#held();
    }

    #held(): string {
      return this.locks.current()?.resource ?? 'nothing';
    }
  }
  return Orders;
}

export const OPERATIONS = ['query', 'mutation'];
export const FIELDS = ['LockBelow', 'LockAbove', 'HandlerBelow', 'HandlerAbove', 'Both'];
export const ORDERS = [ordersOf(Query, 'query'), ordersOf(Mutation, 'mutation')];

/** Details that must not reach the client. */
export const INSIDES = /order:7|redis\.internal|6379|api-3|stack|lib\/|\.ts|node_modules/;

const errors: Record<string, () => Error> = {
  busy: () => new LockBusyError('order:7', { attempts: 3, retryAfterMs: 1_200 }),
  unavailable: () =>
    new LockUnavailableError('order:7', 'acquire', 'failed', new Error('no Redis at redis.internal:6379')),
  other: () => new RangeError('not of a lock'),
};

@Resolver()
export class FailingResolver {
  @Query(() => String, { nullable: true })
  async fail(@Args('kind') kind: string): Promise<string> {
    throw errors[kind]!();
  }
}

@Resolver()
export class FilteredResolver {
  @Query(() => String, { nullable: true })
  @UseFilters(LockExceptionFilter)
  async failFiltered(@Args('kind') kind: string): Promise<string> {
    throw errors[kind]!();
  }
}

@Resolver()
export class SlowResolver {
  readonly events: string[] = [];
  finish = gate();

  @Query(() => String, { nullable: true })
  @LockHandler({ key: (context) => key`slow:${argsOf<{ of: string }>(context).of}`, waitMs: Infinity })
  async slow(@Args('who') who: string, @Args('of') _of: string): Promise<string> {
    this.events.push(`${who} began`);
    await this.finish.opened;
    return who;
  }
}
