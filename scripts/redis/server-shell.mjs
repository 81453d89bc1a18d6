// A shell that starts a server and ends with this process, whatever ended this, SIGKILL included: it waits for the end of a pipe from
// here. Then it kills the server and removes its folder. (A process of Node in its place would take longer to start than Redis does.)
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

// Takes three arguments: the folder, a command that kills the server, and the command that starts it. It starts at the
// first line of its input, and prints the server's process id and then its exit, a line each. A second line makes it
// keep the folder.
const SCRIPT = `
  folder="$1"; kill="$2"; shift 2
  exec 3<&0
  read -r begin <&3 || exec rm -rf "$folder"
  : > "$folder/server.log" # there when the process id is told
  "$@" < /dev/null > "$folder/server.log" 2>&1 3<&- & server=$!
  trap '' PIPE
  trap 'eval "$kill"' HUP INT TERM
  echo "$server"
  (read -r leave <&3 || eval "$kill") > /dev/null & guard=$!
  wait "$server"; wait "$server" # the first may have ended with a signal
  kill -KILL "$guard"; wait "$guard"
  echo exited
  read -r leave <&3 || rm -rf "$folder"`;

/** One start of a server. It keeps this process alive only while something is waited for. */
export class ServerShell {
  isRunning = false;
  #child;
  #pid;
  #exited;
  #closed;
  #awaited = 0;

  /** Nothing is started yet: the folder need not be there. */
  constructor(folder, { command, env, kill }) {
    this.#child = spawn('sh', ['-c', SCRIPT, 'sh', folder, kill, ...command], {
      // In a group of its own: Ctrl-C in a terminal goes to the whole group, and the application that is being stopped
      // still wants to release its locks.
      detached: true,
      env,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const { stdin, stdout } = this.#child;
    stdin.on('error', () => undefined); // it has ended
    this.#closed = new Promise((resolve) => this.#child.once('error', resolve).once('close', resolve));
    const says = (pattern) =>
      new Promise((resolve) => {
        let output = '';
        stdout.on('data', (text) => {
          output += text;
          if (pattern.test(output)) resolve(output);
        });
        void this.#closed.then(() => resolve(output));
      });
    this.#pid = says(/\n/).then(Number.parseInt);
    this.#exited = says(/exited/).then(() => {
      this.isRunning = false;
    });
    this.#unref();
  }

  /** @returns {Promise<number>} the server's process id */
  async begin() {
    this.isRunning = true;
    this.#child.stdin.write('begin\n');
    return this.#during(this.#pid);
  }

  /** Waits no longer than that for the server to end. */
  exit(ms) {
    const timeout = new AbortController();
    const late = sleep(ms, undefined, timeout).catch(() => undefined);
    return this.#during(Promise.race([this.#exited, late])).finally(() => timeout.abort());
  }

  /** The server has ended, and its folder is needed again. */
  leaveFolder() {
    this.#child.stdin.end('leave\n');
    return this.#during(this.#closed);
  }

  /** The same way an end of this process would take. */
  end() {
    this.#child.stdin.end();
    return this.#during(this.#closed);
  }

  async #during(promise) {
    this.#awaited++;
    for (const each of [this.#child, this.#child.stdout, this.#child.stdin]) each.ref();
    try {
      return await promise;
    } finally {
      if (--this.#awaited === 0) this.#unref();
    }
  }

  #unref() {
    for (const each of [this.#child, this.#child.stdout, this.#child.stdin]) each.unref();
  }
}
