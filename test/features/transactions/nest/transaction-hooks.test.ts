import { InvalidLockOptionsError, TransactionScope, typeormTransactional } from 'nestjs-redis-lock';
import { inMemory } from '../../../nest/nest-apps.js';

type Options = Parameters<typeof typeormTransactional>[0];

describe('typeormTransactional', () => {
  const runOnTransactionComplete = (): void => {};
  const getDataSourceByName = () => undefined;

  it.each([
    ['runOnTransactionComplete', { getDataSourceByName }],
    ['getDataSourceByName', { runOnTransactionComplete, getDataSourceByName: {} }],
    ['dataSources', { runOnTransactionComplete, getDataSourceByName, dataSources: 'default' }],
    ['dataSource', { runOnTransactionComplete, getDataSourceByName, dataSource: 'default' }],
  ])('refuses a wrong %s', (option, options) => {
    expect(() => typeormTransactional(options as unknown as Options)).toThrow(
      expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option }),
    );
  });

  it('finds the open transaction among several data sources', () => {
    const runner = (isTransactionActive: boolean) => ({ manager: { queryRunner: { isTransactionActive } } });
    const sources: Record<string, ReturnType<typeof runner> | { manager: object }> = {
      first: { manager: {} },
      ended: runner(false),
      open: runner(true),
    };
    const of = (...dataSources: string[]) =>
      typeormTransactional({ runOnTransactionComplete, getDataSourceByName: (name) => sources[name], dataSources });
    expect(of('first', 'ended', 'unknown').current()).toBeUndefined();
    const hooks = of('first', 'open');
    expect(hooks.current()).toBeDefined();
    expect(hooks.current()).toBe(hooks.current());
  });

  it('distinguishes the transactions of one query runner, which SQLite uses for all of them', async () => {
    const source = { manager: { queryRunner: { isTransactionActive: true } } };
    const ends: (() => void)[] = [];
    const hooks = typeormTransactional({
      runOnTransactionComplete: (callback) => void ends.push(callback),
      getDataSourceByName: () => source,
    });
    const first = hooks.current()!;
    const released = new Promise<void>((resolve) => hooks.runOnEnd(first, async () => resolve()));
    expect(hooks.current()).toBe(first);
    ends[0]!();
    await released;
    expect(hooks.current()).not.toBe(first);
  });
});

describe('TransactionScope', () => {
  it('a run inside of another one belongs to the outer one', async () => {
    const scope = new TransactionScope();
    expect(scope.current()).toBeUndefined();
    await scope.run(async () => {
      const outer = scope.current();
      expect(outer).toBeDefined();
      await scope.run(async () => expect(scope.current()).toBe(outer));
    });
  });

  it('follows an adapter: each has a transaction of its own, and a nested one belongs to the outer one', async () => {
    type Work = () => Promise<unknown>;
    class Adapter {
      readonly #isolation = 'serializable';
      optionsFactory = (connection: string) => ({
        wrapWithTransaction: async (_options: unknown, work: Work, setTx: (tx: string) => void) => {
          setTx(`${connection}, ${this.#isolation}`);
          return work();
        },
        wrapWithNestedTransaction: (_options: unknown, work: Work) => work(),
      });
    }
    const scope = new TransactionScope();
    const adapter = new Adapter();
    expect(scope.follow(adapter)).toBe(adapter);
    const { wrapWithTransaction, wrapWithNestedTransaction } = adapter.optionsFactory('postgres');
    const seen: unknown[] = [];
    const look = async () => void seen.push(scope.current());
    const setTx = (tx: string): void => void seen.push(tx);
    await wrapWithTransaction(
      {},
      async () => {
        await look();
        await wrapWithNestedTransaction({}, look);
        await wrapWithTransaction({}, look, () => {});
      },
      setTx,
    );
    const [tx, outer, nested, other] = seen;
    expect(tx).toBe('postgres, serializable');
    expect(outer).toBeDefined();
    expect(nested).toBe(outer);
    expect(other).not.toBe(outer);
  });

  it.each([[undefined], [{}], [{ optionsFactory: 'x' }]])('follows no %p', (adapter) => {
    expect(() => new TransactionScope().follow(adapter as never)).toThrow(InvalidLockOptionsError);
  });

  it('refuses options that do not open a transaction, and work that is no function', async () => {
    const adapter = new TransactionScope().follow({ optionsFactory: () => ({}) });
    expect(() => adapter.optionsFactory()).toThrow(InvalidLockOptionsError);
    const run = new TransactionScope().run('work' as never);
    await expect(run).rejects.toMatchObject({ option: 'transaction' });
  });
});

it.each([[{}], ['typeorm'], [{ current: () => undefined }], [null]])('the module option is not %p', (transactions) => {
  expect(() => inMemory({ transactions: transactions as never })).toThrow(
    expect.objectContaining({ option: 'transactions' }),
  );
});
