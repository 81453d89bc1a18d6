import type { ContractRunner, StoreSubject, StoreSubjectFactory } from './subject.js';

/** What each test of the contract has. */
export interface Base {
  readonly subject: StoreSubject;
}

/** Tests that each have a place of their own, which is closed at their end. */
export interface Suite<Context extends object> {
  readonly describe: (name: string, body: () => void) => void;
  readonly it: DescribeTest<Context> & {
    /**
     * Marks a test of what the way from a store to its servers can change: which keys are in one script, and in which slot;
     * whose clock counts; who is told by a message, and who is found dead; what replicas or a majority have to have. A store
     * is tried with all tests, another way to the same scripts with those that are marked. See {@link isOnEveryServer}.
     */
    readonly onEveryServer: DescribeTest<Context>;
  };
  /** The same, for tests that need more. It is prepared anew for each of them. */
  with<More extends object>(prepare: (context: Context) => More | Promise<More>): Suite<Context & More>;
  /** The same, for tests of what a store may lack: they pass without a command where it does. */
  where(isThere: (context: Context) => boolean): Suite<Context>;
}

type StoreTest<Context> = (context: Context) => Promise<void> | void;
type DescribeTest<Context> = (name: string, test: StoreTest<Context>) => void;

const marked = new WeakSet<() => Promise<void>>();

/** Whether a test is marked. @param test what the `it` of the runner is called with */
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
      // What failed first explains more than what fails because of it.
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
