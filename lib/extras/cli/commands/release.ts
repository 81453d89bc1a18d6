import { LockError } from '../../../kernel/api/errors.js';
import { type Holder, renewedMsAgo } from '../../../kernel/api/holder.js';
import type { Operator } from '../../../features/jobs/core/operator-requests.js';
import { fencingTickOf } from '../../../kernel/store/fencing-token.js';
import { count } from '../../../kernel/util/plurals.js';
import { commandLine, plainOrQuoted, quote } from '../../../kernel/util/quoted.js';
import { defineCommand } from '../frame/command.js';
import { CliError } from '../frame/exit-codes.js';
import { OPERATOR_OPTIONS, operatorOf } from '../frame/operator.js';
import { flagOption, integerOption } from '../frame/options.js';
import { longDuration } from '../../../kernel/util/durations.js';
import { labelText } from '../../views/locks.js';
import { pauseFor } from '../frame/pause.js';
import type { Session } from '../frame/session.js';

const STILL_WORKS =
  'Ending a lease does not stop its holder, which may keep working until its next renewal is refused, or longer.';

export const release = defineCommand({
  name: 'release',
  summary: 'Ends one lease, selected by its fencing token. The next waiter in the queue asks for the lock at once.',
  args: [{ name: 'resource', isRequired: true }],
  options: {
    token: integerOption(
      'number',
      'The fencing token of the lease, which the commands ls and why show. If that lease has ended, nothing is changed.',
    ),
    yes: flagOption('Skips the confirmation. Required without a terminal.'),
    ...OPERATOR_OPTIONS,
  },
  details: [
    'Without --token, prints the holders and what they may still do, and changes nothing.',
    'You cannot end all leases at once, or all that match a pattern.',
  ],
  examples: ['release order:7', 'release order:7 --token 1791763 --by ann --reason OPS-17'],
  isWriting: true,
  async run({ args, options, output, terminal, session, signal }) {
    const [resource] = args as [string];
    const { client, jobs, keyPrefix } = await session();
    const { holders, waiters } = await client.operators.inspect(resource);
    const name = quote(resource);
    if (holders.length === 0) throw new CliError('refused', `${name} is free: there is no lease to end.`);
    const { token } = options;
    if (token === undefined) {
      holders.forEach((holder) => output.note(describe(name, holder)));
      output.note(STILL_WORKS);
      const line = commandLine('release', resource, `--token ${holders[0]!.fencingToken}`, '--reason <why>');
      output.note(`To end a lease: ${line}`);
      return 'usage';
    }
    const holder = holders.find(({ fencingToken }) => fencingTickOf(fencingToken) === fencingTickOf(token));
    if (!holder) {
      const there = holders.map(({ fencingToken }) => fencingToken).join(', ');
      throw new CliError(
        'refused',
        `No lease of ${name} has the token ${token}. Tokens of its current leases: ${there}. Nothing was changed.`,
      );
    }
    if (!options.yes) {
      output.note(describe(name, holder));
      output.note(`${STILL_WORKS} ${count(waiters.length, 'waiter')} in the queue.`);
      if (!terminal.isInteractive) {
        throw new CliError('usage', 'There is no terminal for the confirmation: add --yes. Nothing was changed.');
      }
      const isSure = await terminal.confirm('End this lease?', signal);
      if (!isSure) throw new CliError('usage', 'Nothing was changed.');
    }
    const operator = operatorOf(options);
    const released = await client.operators.forceRelease(resource, { fencingToken: token, ...operator });
    if (!released)
      throw new CliError('refused', `The lease with the token ${token} had already ended. Nothing was changed.`);
    const ended = { fencingToken: token, holder: holder.instanceId, ...operator };
    const reportedBy = await report(jobs, resource, ended);
    output.print({
      json: { keyPrefix, resource, ...ended, released, reportedBy: reportedBy ?? null },
      shown: [`Ended the lease of ${resource} (token ${token}) that ${holder.instanceId} held.`],
    });
    const where =
      reportedBy === undefined
        ? 'No instance has logged this: this output is the only record.'
        : `${plainOrQuoted(reportedBy)} has logged this.`;
    output.note(`Requested ${describeOperator(operator)}. ${where}`);
    const hearsInMs = Math.max(0, holder.leaseMs / 3 - renewedMsAgo(holder));
    output.note(`The holder finds out at its next renewal, in about ${longDuration(hearsInMs)}.`);
    return 'done';
  },
});

/** How long an instance may take to report it, and how often this process looks. */
const REPORT_MS = 1_500;
const LOOK_EVERY_MS = 50;

/** Has an instance report it, so that it is in the log of the application. @returns which one did, if one did in time */
async function report(
  { requests }: Session['jobs'],
  ...ended: Parameters<Session['jobs']['requests']['tellReleased']>
): Promise<string | undefined> {
  try {
    const told = await requests.tellReleased(...ended);
    for (const giveUpAt = performance.now() + REPORT_MS; performance.now() < giveUpAt; await pauseFor(LOOK_EVERY_MS)) {
      const instance = await requests.notedBy(told);
      if (instance !== undefined) return instance;
    }
  } catch (error) {
    // The lease has ended all the same.
    if (!(error instanceof LockError)) throw error;
  }
  return undefined;
}

function describeOperator({ by, reason }: Operator): string {
  const parts = [by !== undefined && `by ${quote(by)}`, reason !== undefined && `reason ${quote(reason, 200)}`];
  return parts.filter(Boolean).join(', ') || 'without --by and --reason';
}

function describe(name: string, holder: Holder): string {
  const label = labelText(holder);
  return (
    `${name} has been held by ${plainOrQuoted(holder.instanceId)}${label && ` (${label})`} for ${longDuration(holder.heldMs)}: ` +
    `mode ${holder.mode}, token ${holder.fencingToken}, ${longDuration(holder.ttlMs)} left.`
  );
}
