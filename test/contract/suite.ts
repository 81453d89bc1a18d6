import type { ContractRunner, StoreSubject, StoreSubjectFactory } from './subject.js';

/** The common context of all contract tests. */
export interface Base {
  readonly subject: StoreSubject;
}

/** Tests that each have a place of their own, which is closed at their end. */
export interface Suite<Context extends object> {
  readonly describe: (name: string, body: () => void) => void;
  readonly it: DescribeTest<Context> & {
    /**
     * Marks a test that depends on the connection from a store to its servers: the keys and the slot of a script; whose
     * clock counts; who gets a message, and who is found dead; the writes that replicas or a majority must have. A
     * store runs all tests, another connection to the same scripts only the marked ones. See {@link isOnEveryServer}.
     */
    readonly onEveryServer: DescribeTest<Context>;
  };
  /** The same, for tests that need more context. Prepared for each of them. */
  with<More extends object>(prepare: (context: Context) => More | Promise<More>): Suite<Context & More>;
  /** The same, for tests of what a store may lack: they pass without a command where it does. */
  where(isThere: (context: Context) => boolean): Suite<Context>;
}

type StoreTest<Context> = (context: Context) => Promise<void> | void;
type DescribeTest<Context> = (name: string, test: StoreTest<Context>) => void;

const marked = new WeakSet<() => Promise<void>>();

/** Returns true for a marked test. @param test the function that was passed to the `it` of the runner */
export function isOnEveryServer(test: () => Promise<void>): boolean {
  return marked.has(test);
}

// A test may have the timers of its runner replaced.
const { setTimeout, clearTimeout } = globalThis;

/** A test is one function of the runner's `it`, so it needs no hooks of the runner. */
export function suiteOf(runner: ContractRunner, create: StoreSubjectFactory, timeoutMs: number): Suite<Base> {
  return suite(runner, timeoutMs, async (run) => {
    const subject = await create();
    try {
      await run({ subject });
    } catch (error) {
      // Keeps the first failure, which explains more than its consequences.
      await subject.close().catch(() => {});
      throw error;
    }
    await subject.close();
  });
}

function suite<Context extends object>(
  runner: ContractRunner,
  timeoutMs: number,
  within: (run: (context: Context) => Promise<void>) => Promise<void>,
): Suite<Context> {
  const runOf = (test: StoreTest<Context>) => (): Promise<void> =>
    within((context) => inTime(async () => test(context), timeoutMs));
  return {
    describe: (name, body) => void runner.describe(name, body),
    it: Object.assign((name: string, test: StoreTest<Context>) => void runner.it(name, runOf(test)), {
      onEveryServer: (name: string, test: StoreTest<Context>) => {
        const run = runOf(test);
        marked.add(run);
        runner.it(name, run);
      },
    }),
    with: (prepare) =>
      suite(runner, timeoutMs, (run) => within(async (context) => run({ ...context, ...(await prepare(context)) }))),
    where: (isThere) =>
      suite(runner, timeoutMs, (run) => within(async (context) => (isThere(context) ? run(context) : undefined))),
  };
}

async function inTime(test: () => Promise<void>, timeoutMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `the test of the store did not end within ${timeoutMs} ms`;
    timer = setTimeout(() => reject(new Error(message)), timeoutMs);
  });
  try {
    await Promise.race([test(), late]);
  } finally {
    clearTimeout(timer);
  }
}
