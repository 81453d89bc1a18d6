import type { JobInfo } from '../../../features/jobs/core/job-info.js';
import type { ConsoleBodies } from '../bodies.js';
import type { Content } from './fleet-views.js';
import { contains, type Query } from './query.js';
import type { SnapshotCache } from './source.js';

const MAX_RUNS = 100;
const MAX_INSTANCES = 20;
const FAILED: readonly unknown[] = ['error', 'lost', 'crashed'];

export async function showJobs(looks: SnapshotCache, query: Query): Promise<Content<'jobs'>> {
  const filter = query.text('filter').toLowerCase();
  const state = query.oneOf('state', ['all', 'running', 'paused', 'failed', 'missed']);
  const list = query.list<ConsoleBodies['jobs']['rows'][number]>(KEYS, 200);
  const found = (await looks.jobs()).filter(({ job }) => contains(filter, job.name) && isIn(state, job));
  const rows = found.map(({ job, runs }) => ({ ...rowOf(job), history: runs }));
  return { at: looks.now(), ...list(rows) };
}

const KEYS = {
  name: 'name',
  next: 'nextDueAt',
  last: ({ lastRun }: Pick<JobInfo, 'lastRun'>) => lastRun?.startedAt,
  missed: 'missed',
} as const;

export async function showJob(looks: SnapshotCache, query: Query): Promise<Content<'job'>> {
  const name = query.name('name');
  const { job: info, runs } = await looks.job(name, MAX_RUNS);
  return { at: looks.now(), job: rowOf(info), instances: info.instances.slice(0, MAX_INSTANCES), runs };
}

function isIn(state: string, { running, pause, lastRun, missed }: JobInfo): boolean {
  if (state === 'running') return running !== undefined;
  if (state === 'paused') return pause !== undefined;
  if (state === 'failed') return FAILED.includes(lastRun?.outcome);
  return state === 'all' || missed > 0;
}

function rowOf({ isHere: _isHere, instances: _instances, ...info }: JobInfo): ConsoleBodies['job']['job'] {
  return { ...info, state: info.running ? 'running' : info.pause ? 'paused' : 'waits' };
}
