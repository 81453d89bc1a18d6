import { createHash } from 'node:crypto';

/** A Lua script that runs as one atomic step in Redis. */
export interface Script {
  /** For messages. */
  readonly name: string;
  readonly lua: string;
  /** What EVALSHA calls it by. */
  readonly sha: string;
}

export function defineScript(name: string, ...parts: string[]): Script {
  const lua = parts.join('\n');
  return { name, lua, sha: createHash('sha1').update(lua).digest('hex') };
}
