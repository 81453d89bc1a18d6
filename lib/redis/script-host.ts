import type { Keys } from './keys.js';
import type { FlaggedScript } from './script/script.js';

export interface ScriptHost {
  readonly clientId: string;
  readonly keys: Keys;
  /** `true` if the keys of one script have to be in one slot. */
  readonly isCluster: boolean;
  /** The number of the database, in which messages do not stay. */
  readonly database: number;
  /** Runs one script. Resolves to what `read` makes of the reply. @throws LockStoreError */
  run<T>(
    script: FlaggedScript<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    read?: (reply: unknown) => T,
    lazily?: boolean,
  ): Promise<T>;
}
