// A file that one process has: its id is in it.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Takes a file for this process, until that has ended or removes it.
 *
 * @param {string} file
 * @returns {boolean} whether no other process has it, and this one had not
 */
export function claimFile(file) {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const owner = ownerOf(file);
  if (owner !== undefined && isRunning(owner)) return false;
  rmSync(file, { force: true });
  return claimFile(file);
}

/** `undefined`: it has just been removed. */
function ownerOf(file) {
  try {
    return Number(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** @param {number} pid */
export function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}
