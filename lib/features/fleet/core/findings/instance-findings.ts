import { formatDuration } from '../../../../kernel/util/durations.js';
import { count } from '../../../../kernel/util/plurals.js';
import { commandLine, plainOrQuoted, quote, quoteSome } from '../../../../kernel/util/quoted.js';
import type { FleetInstance, FleetReport } from '../roll/lock-fleet.js';
import type { Finding, SeenJob } from './finding.js';

/** Deployments change leaders, too: once for each instance. */
const MIN_ELECTIONS = 5;
const MIN_LOST = 3;
const MIN_BLOCKED_MS = 1_000;

export function describeUnreadable(unreadable: number): string {
  return `${count(unreadable, 'answer')} to the roll call could not be read: sent by a newer version of nestjs-redis-lock, or forged.`;
}

export function instanceFindings(fleet: FleetReport, jobs: readonly SeenJob[]): Finding[] {
  const { instances, silent, unreadable, unlisted } = fleet;
  const newest = instances
    .map(({ version }) => version)
    .sort(byVersion)
    .at(-1);
  const found = instances.flatMap((instance) => findingsOf(instance, newest!));
  // A silent holder has a finding of its own.
  const holding = new Set(unlisted.map(({ instanceId }) => instanceId));
  for (const instanceId of silent) {
    if (holding.has(instanceId)) continue;
    found.push(
      about(
        'warning',
        'instanceSilent',
        instanceId,
        'does not answer: it is frozen, too busy, or of another version.',
        {
          text: 'Look at its process, or restart it.',
        },
      ),
    );
  }
  if (unreadable > 0) {
    found.push({
      severity: 'note',
      kind: 'unreadable',
      sentence: describeUnreadable(unreadable),
      action: {
        text: 'Use a command line or console of the same version as the instances.',
        command: 'npx nestjs-redis-lock --version',
      },
    });
  }
  if (instances.length + silent.length === 0 && jobs.length > 0) {
    found.push({
      severity: 'critical',
      kind: 'noInstances',
      sentence: `No instance is connected: no job runs (${quoteSome(jobs.map(({ job }) => job.name))}).`,
      action: { text: 'Start the application, or check which Redis it uses.', command: 'npx nestjs-redis-lock jobs' },
    });
  }
  return [...found, ...leaderFindings(instances)];
}

function findingsOf(instance: FleetInstance, newest: string): Finding[] {
  const { instanceId, hearing, health, blockedMs, lostLately, version } = instance;
  const found: Finding[] = [];
  if (!hearing) {
    found.push(
      about(
        'warning',
        'instanceDeaf',
        instanceId,
        'receives no messages, so its waiting calls get locks up to a second late.',
        {
          text: 'Check that its Redis user may subscribe to the lock channels, and that proxies let pub/sub messages pass.',
        },
      ),
    );
  }
  if (health === 'renewalsFail') {
    found.push(
      about('warning', 'renewalsFail', instanceId, 'could not renew a lease in the last minute.', {
        text: 'Check its connection to Redis. Its log has the error.',
      }),
    );
  }
  if (blockedMs >= MIN_BLOCKED_MS) {
    const what = `had its event loop blocked for ${formatDuration(blockedMs)} in the last minute.`;
    found.push(
      about('warning', 'instanceBlocked', instanceId, what, {
        text: 'Find the synchronous work there: a blocked loop cannot renew leases.',
      }),
    );
  }
  if (lostLately >= MIN_LOST) {
    const what = `lost ${count(lostLately, 'lease')} in the last ten minutes.`;
    found.push(
      about('warning', 'leasesLost', instanceId, what, {
        text: 'Look for a blocked event loop, a slow Redis, or leases that are too short. The log of the instance has each reason.',
      }),
    );
  }
  if (version !== newest) {
    const what = `runs nestjs-redis-lock ${version}, and others run ${newest}.`;
    found.push(
      about('note', 'oldVersion', instanceId, what, {
        text: 'Deploy the newer version everywhere, unless a deployment is in progress.',
      }),
    );
  }
  return found;
}

function about(
  severity: Finding['severity'],
  kind: Finding['kind'],
  instanceId: string,
  what: string,
  action: { readonly text: string },
): Finding {
  return {
    severity,
    kind,
    sentence: `${plainOrQuoted(instanceId)} ${what}`,
    culprit: { instanceId },
    action: { ...action, command: commandLine('who', instanceId) },
  };
}

function leaderFindings(instances: readonly FleetInstance[]): Finding[] {
  const elections = new Map<string, { all: number; most: number; instanceId: string }>();
  for (const { instanceId, leaderships } of instances) {
    for (const { name, elections: times } of leaderships) {
      const { all, most, instanceId: first } = elections.get(name) ?? { all: 0, most: 0, instanceId };
      const isMore = times > most;
      elections.set(name, { all: all + times, most: isMore ? times : most, instanceId: isMore ? instanceId : first });
    }
  }
  return [...elections].flatMap(([name, { all, most, instanceId }]) => {
    if (all < MIN_ELECTIONS) return [];
    return {
      severity: 'warning' as const,
      kind: 'leaderFlaps' as const,
      sentence:
        `The leadership ${quote(name)} has changed hands ${all} times in the last ten minutes: ` +
        `${plainOrQuoted(instanceId)} was elected ${count(most, 'time')}.`,
      resource: name,
      culprit: { instanceId },
      action: {
        text: 'Look for a blocked event loop, or for code that resigns. The log has the reason for each demotion.',
        command: 'npx nestjs-redis-lock instances',
      },
    };
  });
}

function byVersion(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
