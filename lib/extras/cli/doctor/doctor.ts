import { describeServer } from '../../../redis/script/address.js';
import type { ServerConnection } from '../../../redis/connection/server-connection.js';
import { type CommandContext, defineCommand } from '../frame/command.js';
import { CliError, type ExitName } from '../frame/exit-codes.js';
import type { Session } from '../frame/session.js';
import { exitOf, failing, type Finding } from './finding.js';
import { findForeignKeys, findHealth, findInstances, findMessages, findRights } from './lock-findings.js';
import { readFacts, type ServerFacts } from './server-facts.js';
import { findingsOf } from './server-findings.js';

const MARKS = { ok: 'ok', note: 'note', warning: 'WARNING', failed: 'FAILED', unknown: 'unknown' } as const;

export const doctor = defineCommand({
  name: 'doctor',
  summary: 'Checks if Redis is fit for locks, and suggests what to change.',
  args: [],
  options: {},
  details: [
    'Writes one key that expires after seconds, and publishes one message. Takes no lock.',
    'A setting that Redis hides from the user is unknown, not a warning: managed services do not allow CONFIG.',
    'Exits with 0 if all is well, 1 with a warning, and 3 if locks are unavailable.',
  ],
  examples: ['doctor --url redis://localhost:6379', 'doctor --json'],
  run: runDoctor,
});

async function runDoctor({ session, output }: CommandContext): Promise<ExitName> {
  const findings = await examine(session);
  const rowsOf = output.format === 'table' ? rowsForPerson : rowForProgram;
  output.print({
    json: { findings },
    shown: [{ columns: ['', 'check', 'found'], rows: findings.flatMap(rowsOf) }],
  });
  return exitOf(findings);
}

/** What the doctor says where Redis cannot be reached. */
export function findAway(message: string): Finding & { readonly fix: string } {
  const fix = 'Check the address, the password, TLS (rediss://), and the network between this machine and Redis.';
  return { ...failing('connection', message, fix), fix };
}

function rowForProgram({ check, status, message, fix, server }: Finding): string[][] {
  return [[status, check, message, fix ?? '', server ?? '']];
}

/** What to do stands below: beside it, no terminal would be wide enough. */
function rowsForPerson({ check, status, message, fix, server }: Finding): string[][] {
  const where = server === undefined ? '' : ` [${server}]`;
  const rows = [[MARKS[status], check, message + where]];
  if (fix !== undefined) rows.push(['', '', `→ ${fix}`]);
  return rows;
}

/** @throws UsageError */
async function examine(session: CommandContext['session']): Promise<Finding[]> {
  let open: Session;
  try {
    open = await session();
  } catch (error) {
    if (!(error instanceof CliError) || error.exit !== 'redis') throw error;
    return [findAway(error.message)];
  }
  const { client, store } = open;
  const servers = store.connection.servers();
  const connected = servers.filter(({ isConnected }) => isConnected);
  const [health, rights, facts] = await Promise.all([
    client.health({ timeoutMs: 5_000 }),
    store.missingRights(),
    Promise.all(connected.map((server) => readFacts(server.client))),
  ]);
  const namesServers = servers.length > 1;
  const at = (server: ServerConnection, found: Finding[]): Finding[] =>
    namesServers ? found.map((each) => ({ ...each, server: describeServer(server.client) })) : found;
  const user = sameIn(facts, ({ user: name }) => name);
  return [
    ...findHealth(health),
    ...connected.flatMap((server, index) => at(server, findingsOf(facts[index]!))),
    ...rights.flatMap((each, index) => at(servers[index]!, findRights(each, user))),
    ...(connected.length > 0 ? [await findMessages(connected[0]!.client, store.keys)] : []),
    await findForeignKeys(connected, store.keys),
    await findInstances(
      connected.map(({ client: each }) => each),
      store.keys,
      store.instanceId,
    ),
  ];
}

/** The value that all servers agree on. */
function sameIn<T>(facts: readonly ServerFacts[], read: (facts: ServerFacts) => T): T | undefined {
  const values = new Set(facts.map(read));
  return values.size === 1 ? [...values][0] : undefined;
}
