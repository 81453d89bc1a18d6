import {
  Args,
  GqlExecutionContext,
  Int,
  Mutation,
  Query,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { DistributedLock, key, LockHandler } from 'nestjs-redis-lock';

@Resolver()
export class OrdersResolver {
  @Mutation(() => String)
  @DistributedLock((id: string) => key`order:${id}`)
  async pay(@Args('id') id: string) {
    return `paid ${id}`;
  }

  @Query(() => String)
  @LockHandler(
    (context) =>
      key`report:${GqlExecutionContext.create(context).getContext().req.headers['x-tenant']}`,
  )
  report() {
    return 'a long report';
  }

  @Subscription(() => Int)
  @LockHandler({ key: 'ticks', permits: 100 }) // at most 100 subscribers at once
  async *ticks() {
    for (let tick = 1; tick <= 3; tick++) yield { ticks: tick };
  }
}
