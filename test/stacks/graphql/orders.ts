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
  @LockHandler((context) => {
    const { req } = GqlExecutionContext.create(context).getContext();
    return key`report:${req.headers['x-tenant']}`;
  })
  report() {
    return 'a long report';
  }

  @Subscription(() => Int)
  // at most 100 subscribers at once
  @LockHandler({ key: 'ticks', permits: 100 })
  async *ticks() {
    for (let tick = 1; tick <= 3; tick++) yield { ticks: tick };
  }
}
