import { createHash } from 'node:crypto';
import { SCRIPT_TEXTS } from './scripts.generated.js';

/** A Lua script that runs as one atomic step in Redis. */
export interface Script {
  /** For messages. */
  readonly name: string;
  readonly lua: string;
  /** The SHA-1 of its text, which EVALSHA takes. */
  readonly sha: string;
}

export function defineScript(name: keyof typeof SCRIPT_TEXTS): Script {
  const lua = SCRIPT_TEXTS[name];
  return { name, lua, sha: createHash('sha1').update(lua).digest('hex') };
}
