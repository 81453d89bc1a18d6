import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Writes a file, and its folder, atomically: concurrent readers and writers see all of it or nothing.
 *
 * @param {string} path
 * @param {string | Uint8Array} content
 */
export function publishFile(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, content);
  renameSync(unfinished, path);
}
