import type { Finding } from '../../../features/fleet/core/findings/finding.js';
import { describeServer } from '../../../redis/script/address.js';
import type { ServerConnection } from '../../../redis/connection/server-connection.js';
import { type CommandContext, defineCommand } from '../frame/command.js';
import { findingTable } from '../frame/findings.js';
import { surveyOf } from '../frame/roll.js';
import { CliError, type ExitName } from '../frame/exit-codes.js';
import type { Session } from '../frame/session.js';
import { exitOf, failing, type Check } from './check.js';
import { checkForeignKeys, checkHealth, checkInstances, checkMessages, checkRights } from './lock-checks.js';
import { readFacts, type ServerFacts } from './server-facts.js';
import { checksOf } from './server-checks.js';
import { checkTryOptions, TRY_OPTIONS, type Tried, tryLocks } from '../try/try.js';
import { checkPromises } from './promise-checks.js';

const MARKS = { ok: 'ok', note: 'note', warning: 'WARNING', failed: 'FAILED', unknown: 'unknown' } as const;

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'Checks whether your Redis is suitable for locks, and shows what is wrong and how to fix it.',
  args: [],
  options: TRY_OPTIONS,
  details: [
    'Writes one key that expires after a few seconds, and publishes one message. Without --try, acquires no lock.',
    'With --try, test clients lock resources under a separate prefix, while doctor breaks the connections of some and ends others. The clients send at most 200 commands a second. Even after Ctrl-C, their keys are deleted.',
    'A setting that your Redis user lacks the permission to read is `unknown`, not a warning: managed services forbid CONFIG.',
    'Exits with 1 if there is a warning, with 3 if locks are unavailable, and with 7 if --try saw a broken guarantee.',
  ],
  examples: ['doctor --url redis://localhost:6379', 'doctor --try 60s --yes --history tried.jsonl'],
  run: runDoctor,
});

async function runDoctor(context: CommandContext<typeof TRY_OPTIONS>): Promise<ExitName> {
  const { session, output, options, signal } = context;
  checkTryOptions(context);
  const examined = await examine(session);
  const { findings } = examined;
  const exit = exitOf(examined.checks, findings);
  const tried = options.try === undefined || exit === 'redis' ? undefined : await tryLocks(options.try, context);
  if (signal.aborted) return exit;
  const checks = [...(tried ? checkPromises(tried) : []), ...examined.checks];
  const rowsOf = output.format === 'table' ? rowsForPerson : rowForProgram;
  output.print({
    json: { ...(tried && { try: tried }), findings, checks },
    shown: [
      ...(tried ? describeTry(tried) : []),
      findingTable(findings, output.format),
      { columns: ['', 'check', 'found'], rows: checks.flatMap(rowsOf) },
    ],
  });
  return tried && tried.violations.length > 0 ? 'broken' : exit;
}

function describeTry({ result, again }: Tried): string[] {
  return [result, `To repeat the trial with the same random choices: ${again}`];
}

/** The only check if Redis cannot be reached. */
export function checkAway(message: string): Check & { readonly fix: string } {
  const fix = 'Check the address, the password, TLS (rediss://), and the network between this machine and Redis.';
  return { ...failing('connection', message, fix), fix };
}

function rowForProgram({ check, status, message, fix, server }: Check): string[][] {
  return [[status, check, message, fix ?? '', server ?? '']];
}

/** The remedy is printed below: beside it, no terminal would be wide enough. */
function rowsForPerson({ check, status, message, fix, server }: Check): string[][] {
  const where = server === undefined ? '' : ` [${server}]`;
  const rows = [[MARKS[status], check, message + where]];
  if (fix !== undefined) rows.push(['', '', `→ ${fix}`]);
  return rows;
}

/** @throws UsageError */
async function examine(
  session: CommandContext['session'],
): Promise<{ readonly checks: readonly Check[]; readonly findings: readonly Finding[] }> {
  let open: Session;
  try {
    open = await session();
  } catch (error) {
    if (!(error instanceof CliError) || error.exit !== 'redis') throw error;
    return { checks: [checkAway(error.message)], findings: [] };
  }
  const { store } = open;
  const servers = store.connection.servers();
  const connected = servers.filter(({ isConnected }) => isConnected);
  const [{ findings, health }, rights, facts] = await Promise.all([
    surveyOf(open),
    store.missingRights(),
    Promise.all(connected.map((server) => readFacts(server.client))),
  ]);
  const namesServers = servers.length > 1;
  const at = (server: ServerConnection, found: Check[]): Check[] =>
    namesServers ? found.map((each) => ({ ...each, server: describeServer(server.client) })) : found;
  const user = sameIn(facts, ({ user: name }) => name);
  const checks = [
    ...checkHealth(health),
    ...connected.flatMap((server, index) => at(server, checksOf(facts[index]!))),
    ...rights.flatMap((each, index) => at(servers[index]!, checkRights(each, user))),
    ...(connected.length > 0 ? [await checkMessages(connected[0]!.client, store.keys)] : []),
    await checkForeignKeys(connected, store.keys),
    ...(await checkInstances(
      connected.map(({ client: each }) => each),
      store.keys,
      store.instanceId,
    )),
  ];
  return { checks, findings };
}

/** The value that all servers agree on. */
function sameIn<T>(facts: readonly ServerFacts[], read: (facts: ServerFacts) => T): T | undefined {
  const values = new Set(facts.map(read));
  return values.size === 1 ? [...values][0] : undefined;
}
