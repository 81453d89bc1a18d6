// Ours, with releases whose answer nobody waits for.
import { connect as connectOurs } from './ours.mjs';

/** @param {object} tuning options of `forRoot` */
export function connect(url, tuning = {}) {
  return connectOurs(url, { backgroundRelease: true, ...tuning });
}
