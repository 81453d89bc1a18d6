import type { ContractRunner, StoreSubject, StoreSubjectFactory } from './subject.js';

/** What each test of the contract has. */
export interface Base {
  readonly subject: StoreSubject;
}

/** Tests that each have a place of their own, which is closed at their end. */
export interface Suite<Context extends object> {
  readonly describe: (name: string, body: () => void) => void;
  readonly it: (name: string, test: (context: Context) => Promise<void> | void) => void;
  /** The same, for tests that need more. It is prepared anew for each of them. */
  with<More extends object>(prepare: (context: Context) => More | Promise<More>): Suite<Context & More>;
}

// A test may have the timers of its runner replaced.
const { setTimeout, clearTimeout } = globalThis;

/** The tests of one call of the API. A test is one function of the runner's `it`, so it needs no hooks of the runner. */
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
  return {
    describe: (name, body) => void runner.describe(name, body),
    it(name, test) {
      runner.it(name, () => within((context) => inTime(async () => test(context), timeoutMs)));
    },
    with: (prepare) =>
      suite(runner, timeoutMs, (run) => within(async (context) => run({ ...context, ...(await prepare(context)) }))),
  };
}

async function inTime(test: () => Promise<void>, timeoutMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `the test of the store did not end within ${timeoutMs} ms (timeoutMs)`;
    timer = setTimeout(() => reject(new Error(message)), timeoutMs);
  });
  try {
    await Promise.race([test(), late]);
  } finally {
    clearTimeout(timer);
  }
}
