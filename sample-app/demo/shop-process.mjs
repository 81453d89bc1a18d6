// @ts-check
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../dist/sample-app/main.js', import.meta.url));
const preload = new URL('preload.mjs', import.meta.url).href;

const START_MS = 60_000;
const ANSWER_MS = 60_000;
const LOG_TAIL_LINES = 15;

/** Opens the routes of operators, and the console. */
export const OPERATOR_KEY = randomBytes(8).toString('hex');

/** One instance of the shop: a process of its own, which can be killed and paused, and is talked to over HTTP. */
export class ShopProcess {
  /** @type {import('node:child_process').ChildProcess} */
  #child;
  #log = '';
  url = '';

  /**
   * @param {string} name
   * @param {Record<string, string>} env further environment variables; REDIS_URL at least
   */
  constructor(name, env) {
    this.name = name;
    this.#child = fork(main, {
      execArgv: ['--enable-source-maps', '--import', preload],
      env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', PORT: '0', INSTANCE: name, OPERATOR_KEY, ...env },
      silent: true,
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.on('data', (text) => (this.#log += text));
  }

  /**
   * Starts an instance and waits until it listens.
   *
   * @param {string} name
   * @param {Record<string, string>} env
   */
  static async start(name, env) {
    const shop = new ShopProcess(name, env);
    try {
      await shop.#listens();
    } catch (error) {
      await shop.kill();
      throw error;
    }
    return shop;
  }

  get pid() {
    return this.#child.pid;
  }

  get isRunning() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The end of its log, for errors. */
  get logTail() {
    return this.#log.trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   * @param {Record<string, string>} [headers]
   * @returns {Promise<{ status: number, headers: Headers, body: any }>}
   */
  async request(method, path, body, headers = {}) {
    const response = await fetch(this.url + path, {
      method,
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** @param {string} path */
  get(path) {
    return this.request('GET', path);
  }

  /** @param {string} path @param {object} [body] */
  post(path, body) {
    return this.request('POST', path, body);
  }

  /** @param {string} path @param {object} body */
  put(path, body) {
    return this.request('PUT', path, body);
  }

  /**
   * As an operator, at what is below /operators.
   *
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   */
  operate(method, path, body) {
    return this.request(method, `/operators${path}`, body, { 'x-operator-key': OPERATOR_KEY });
  }

  /**
   * Returns the holders and waiters of a lock.
   *
   * @param {string} resource
   * @returns {Promise<import('nestjs-redis-lock').LockState>}
   */
  async lock(resource) {
    return (await this.operate('GET', `/locks/${encodeURIComponent(resource)}`)).body;
  }

  /** SIGSTOP: the whole process is paused, and its connections stay open. */
  pause() {
    this.#child.kill('SIGSTOP');
  }

  resume() {
    this.#child.kill('SIGCONT');
  }

  /** SIGKILL, which leaves it no time for anything. */
  async kill() {
    if (!this.isRunning) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  /** As a deployment does: SIGTERM. Gives the exit code, null where a signal ended it. */
  async stop() {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const [code] = await exited;
    return code;
  }

  async [Symbol.asyncDispose]() {
    await this.kill();
  }

  #listens() {
    return new Promise((resolve, reject) => {
      const fail = (/** @type {string} */ what) => reject(new Error(`${this.name} ${what}:\n${this.logTail}`));
      const timer = setTimeout(() => fail(`does not listen after ${START_MS / 1000} s`), START_MS);
      this.#child.once('exit', () => fail('ended before it listened'));
      this.#child.stdout?.on('data', () => {
        const listening = / listens on (http\S+)/.exec(this.#log);
        if (!listening?.[1]) return;
        this.url = listening[1];
        clearTimeout(timer);
        resolve(undefined);
      });
    });
  }
}
