import { randomBytes } from 'node:crypto';
import { describeThrown } from '../../../kernel/util/quoted.js';
import { ConsoleAnswers } from '../../console/answers/console-answers.js';
import { Refusal } from '../../console/answers/reply.js';
import type { ConsoleSource } from '../../console/answers/source.js';
import { checkAway } from '../doctor/doctor.js';
import { type CommandContext, defineCommand } from '../frame/command.js';
import { CliError } from '../frame/exit-codes.js';
import { integerOption } from '../frame/options.js';
import { pauseFor } from '../frame/pause.js';
import { NO_OWN_JOBS } from '../frame/roll.js';
import type { Session } from '../frame/session.js';
import { PageServer } from './page-server.js';

const TRY_AGAIN_MS = 2_000;

export const ui = defineCommand({
  name: 'ui',
  summary: 'Serves a read-only console on this machine: locks, waits, jobs and leaders on one page.',
  args: [],
  options: { port: integerOption('number', 'Port to listen on. Default: any free port.') },
  details: [
    'Listens on 127.0.0.1 under a random path until Ctrl-C, and prints the address.',
    'If Redis cannot be reached, prints what to check, and retries.',
  ],
  examples: ['ui', 'ui --url redis://localhost:6379'],
  async run({ options, output, session, signal }) {
    const opening = new Opening(session);
    if (!(await opening.open())) {
      const { message, fix } = checkAway(opening.trouble);
      output.note(message);
      output.note(`→ ${fix}`);
    }
    const answers = new ConsoleAnswers({
      get title() {
        return opening.opened ? `Locks of ${opening.opened.keyPrefix}` : 'Locks';
      },
      sources: [opening],
      actions: [],
      onError: (error) => output.note(describeThrown(error, true)),
    });
    const server = new PageServer(answers, `/${randomBytes(18).toString('base64url')}/`);
    const url = await server.listen(options.port ?? 0).catch((error: unknown) => {
      throw new CliError(
        'usage',
        `The console cannot listen on port ${options.port ?? 0}: ${describeThrown(error)}. Pass another --port.`,
      );
    });
    try {
      output.print({ json: { url }, shown: [url] });
      while (!signal.aborted) {
        await pauseFor(opening.opened ? 60_000 : TRY_AGAIN_MS, signal);
        if (!opening.opened && !signal.aborted && (await opening.open())) output.note('Redis answers now.');
      }
    } finally {
      await server.close();
    }
    return 'done';
  },
});

/** The locks of the application, once Redis can be reached. */
class Opening implements ConsoleSource {
  readonly service = 'default';
  readonly leaseMs = null;
  readonly ownJobs = () => NO_OWN_JOBS;
  opened: Session | undefined;
  trouble = '';

  constructor(private readonly session: CommandContext['session']) {}

  /** @throws CliError that is not about Redis */
  async open(): Promise<boolean> {
    try {
      this.opened = await this.session();
      return true;
    } catch (error) {
      if (!(error instanceof CliError) || error.exit !== 'redis') throw error;
      this.trouble = error.message;
      return false;
    }
  }

  get client(): Session['client'] {
    return this.#session.client;
  }

  get jobs(): Session['jobs'] {
    return this.#session.jobs;
  }

  mayOnlyLook(): Promise<boolean> {
    return this.#session.mayOnlyLook();
  }

  /** @throws Refusal */
  get #session(): Session {
    if (this.opened) return this.opened;
    const { fix } = checkAway(this.trouble);
    throw new Refusal('REDIS_UNAVAILABLE', `Redis cannot be reached. ${fix}`);
  }
}
