import { createInterface } from 'node:readline/promises';

/** What the command line knows of the process around it. Tests bring their own. */
export interface CliProcess {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** Of the package. */
  readonly version: string;
  /** Loads the module of `--config`. */
  readonly load: (url: string) => Promise<object>;
}

/** Asks the person at the terminal, and shows that something takes long. */
export class Terminal {
  #isProgressShown = false;

  constructor(private readonly process: Pick<CliProcess, 'stdin' | 'stderr'>) {}

  /** Whether there is a person who can be asked. */
  get isInteractive(): boolean {
    return Boolean(this.process.stdin.isTTY && this.process.stderr.isTTY);
  }

  /** @returns false without a terminal, and where the answer is not yes */
  async confirm(question: string, signal: AbortSignal): Promise<boolean> {
    if (!this.isInteractive) return false;
    this.endProgress();
    const { stdin: input, stderr: output } = this.process;
    const reader = createInterface({ input, output, terminal: true });
    // Ctrl-C is a key here, and Ctrl-D ends the input.
    const over = new Promise<string>((resolve) => {
      reader.once('SIGINT', () => resolve('no'));
      reader.once('close', () => resolve('no'));
    });
    try {
      const answer = await Promise.race([reader.question(`${question} [y/N] `, { signal }), over]);
      return /^y(es)?$/i.test(answer.trim());
    } finally {
      reader.close();
    }
  }

  /** Shows a line that the next one takes the place of. Without a terminal, nothing is shown. */
  progress(text: string): void {
    if (!this.process.stderr.isTTY) return;
    this.process.stderr.write(`\r\u001b[K${text}`);
    this.#isProgressShown = true;
  }

  endProgress(): void {
    if (this.#isProgressShown) this.process.stderr.write('\r\u001b[K');
    this.#isProgressShown = false;
  }
}
