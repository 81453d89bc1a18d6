export type RedisServerSource = { kind: 'binary'; path: string } | { kind: 'image'; image: string };

export interface RedisServerOptions {
  /** Default: REDIS_SERVER_BIN, else REDIS_SERVER_IMAGE, else `redis-server` or `valkey-server` on PATH. */
  source?: RedisServerSource;
  /** Default: a free one. */
  port?: number;
  /** The text of a configuration file, which a Sentinel needs: it writes into it. */
  config?: string;
  /** Further options of redis-server, such as `['--appendonly', 'yes']`. They win over ours. */
  args?: string[];
  /** Further environment variables of the server process. */
  env?: Record<string, string>;
}

/** A private Redis on the loopback. It is gone when the process that started it is, whatever ended that. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Of the current server process (of Docker's client, if the server is a container). Changes with a restart. */
  readonly pid: number;
  /** Its temporary folder: `server.log` and `data/`. */
  readonly folder: string;
  /** SIGKILL, as a crash would. `restart` brings it back. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): Promise<void>;
  /** SIGCONT. */
  resume(): Promise<void>;
  /**
   * On the same port; after an orderly shutdown, unless it was killed before.
   * `keepData` (default: false) keeps what it wrote to disk. `args` are further options of redis-server, this once.
   */
  restart(options?: { keepData?: boolean; args?: string[] }): Promise<void>;
  /** Ends the server for good and removes its folder. Again does nothing. */
  stop(): Promise<void>;
}

export function startRedisServer(options?: RedisServerOptions): Promise<RedisServer>;
