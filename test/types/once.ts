// Compiled by test/nest/types/types.slow.test.ts, never run.
import { expectTypeOf } from 'expect-type';
import { key, type Lease, Once, type RedisLockService } from 'nestjs-redis-lock';

class Report {
  constructor(readonly total: bigint) {}
}

const asText = {
  serialize: (report: Report) => String(report.total),
  parse: (text: string) => new Report(BigInt(text)),
};

export class Reports<T> {
  readonly tenant = 'a';

  @Once({ key: 'reports', resultTtlMs: 60_000 })
  async all(): Promise<string[]> {
    return [];
  }

  @Once({ key: (id: string) => key`report:${id}`, resultTtlMs: 60_000, waitMs: 0, onLost: 'ignore', maxBytes: 1_000 })
  async one(id: string, _more?: boolean): Promise<{ id: string }> {
    return { id };
  }

  @Once({
    key(this: Reports<unknown>, id: string) {
      return key`${this.tenant}:${id}`;
    },
    resultTtlMs: 60_000,
  })
  async nothing(_id: string): Promise<void> {}

  @Once({ key: 'total', resultTtlMs: 60_000, ...asText })
  async total(): Promise<Report> {
    return new Report(1n);
  }

  @Once({ key: 'of the class', resultTtlMs: 60_000 })
  async ofTheClass(value: T): Promise<T> {
    return value;
  }

  // @ts-expect-error the parameters of the key function are others
  @Once({ key: (id: number) => key`report:${id}`, resultTtlMs: 60_000 })
  async otherParameter(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error not async
  @Once({ key: 'reports', resultTtlMs: 60_000 })
  notAsync(): number {
    return 1;
  }

  // @ts-expect-error what parse returns is no result of the method
  @Once({ key: 'total', resultTtlMs: 60_000, ...asText })
  async otherResult(): Promise<string> {
    return '';
  }

  // @ts-expect-error how long is the result kept?
  @Once({ key: 'reports' })
  async noTtl(): Promise<void> {}

  // @ts-expect-error one key
  @Once({ key: ['a', 'b'], resultTtlMs: 60_000 })
  async several(): Promise<void> {}

  // @ts-expect-error a key alone says not how long the result is kept
  @Once('reports')
  async keyAlone(): Promise<void> {}

  // @ts-expect-error one signal for all calls
  @Once({ key: 'reports', resultTtlMs: 60_000, signal: new AbortController().signal })
  async withSignal(): Promise<void> {}
}

export async function calls(locks: RedisLockService): Promise<void> {
  const options = { resultTtlMs: 60_000, signal: AbortSignal.timeout(5) };
  expectTypeOf(await locks.once('report:7', options, () => 1)).toEqualTypeOf<number>();
  expectTypeOf(await locks.once('report:7', options, async (lease) => lease)).toEqualTypeOf<Lease>();
  expectTypeOf(await locks.once('total', { ...options, ...asText }, () => new Report(1n))).toEqualTypeOf<Report>();
  expectTypeOf(await locks.forget('report:7')).toEqualTypeOf<void>();
  // @ts-expect-error how long is the result kept?
  await locks.once('report:7', {}, () => 1);
  // @ts-expect-error the work comes last
  await locks.once('report:7', () => 1, options);
  // @ts-expect-error parse is for another result
  await locks.once('total', { ...options, ...asText }, () => 'text');
  // @ts-expect-error its lock is always exclusive
  await locks.once('report:7', { ...options, mode: 'read' }, () => 1);
}
