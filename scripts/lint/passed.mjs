// What a check has passed here before, so that it looks at what is new.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../setup.mjs';

/** @typedef {import('./new-files.mjs').Contents} Contents */

/** What one check has passed. Nothing is kept in a clone, as on CI: there it looks at everything. */
export class Passed {
  #path;

  /**
   * @param {string} check a name for a file
   * @param {object} options
   * @param {readonly string[]} options.rules files of which a change can change what is said of any file
   * @param {readonly string[]} options.files patterns, as Git takes them
   */
  constructor(check, { rules, files }) {
    this.#path = join(root, `node_modules/.cache/passed/${check}.json`);
    const listed = ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...files];
    const names = execFileSync('git', listed, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
      .trim()
      .split('\n')
      .filter((name) => existsSync(join(root, name)));
    /** @type {Contents} the hash of each file */
    this.now = { rules: hash(...rules), files: Object.fromEntries(names.map((name) => [name, hash(name)])) };
    /** @type {Contents | undefined} the same, when the check last passed */
    this.kept = existsSync(this.#path) ? JSON.parse(readFileSync(this.#path, 'utf8')) : undefined;
  }

  /** The check has passed what was found above. */
  keep() {
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, JSON.stringify(this.now));
  }
}

function hash(...names) {
  const sum = createHash('sha256');
  for (const name of names) sum.update(readFileSync(join(root, name)));
  return sum.digest('base64');
}
