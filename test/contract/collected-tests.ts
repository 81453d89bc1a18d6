import type { ContractRunner } from './subject.js';

/** A test runner that runs nothing by itself. */
export class CollectedTests {
  readonly all: { readonly name: string; readonly run: () => Promise<void> }[] = [];

  constructor(describeContract: (runner: ContractRunner) => void) {
    const path: string[] = [];
    describeContract({
      describe: (name, body) => {
        path.push(name);
        body();
        path.pop();
      },
      it: (name, run) => void this.all.push({ name: [...path, name].join(' > '), run }),
    });
  }

  /** Runs one after the other, up to the first that fails. */
  async firstFailure(): Promise<{ readonly name: string; readonly error: Error } | undefined> {
    for (const { name, run } of this.all) {
      try {
        await run();
      } catch (error) {
        return { name, error: error as Error };
      }
    }
    return undefined;
  }
}
