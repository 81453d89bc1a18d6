// A reporter of Jest: appends how long the tests of each file took to the file that TIMINGS_RECORD names. See scripts/timings.mjs.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

export default class RecordTimings {
  #root;
  #seconds = {};

  constructor({ rootDir }) {
    this.#root = rootDir;
  }

  onTestResult(_test, { testFilePath, perfStats: { runtime } }) {
    this.#seconds[relative(this.#root, testFilePath)] = runtime / 1_000;
  }

  onRunComplete() {
    appendFileSync(process.env.TIMINGS_RECORD, `${JSON.stringify(this.#seconds)}\n`);
  }
}
