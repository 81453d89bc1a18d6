/** The command line and the console show jobs and the fleet on every page. */
const SHOWN_BY = ['extras/cli', 'extras/console', 'extras/views', 'console.ts'];

/**
 * Where each feature is named outside of its folder.
 *
 * @type {Record<string, import('./remove.mjs').Places>}
 */
export const FEATURES = {
  fence: {
    gone: ['fence.ts'],
    lines: {
      'redis/script/scripts.ts': ['GUARD'],
      'redis/script/missing-rights.ts': ['GUARD'],
      'nest/handlers/answers.ts': [],
    },
  },
  transactions: { gone: [], lines: { 'index.ts': [] } },
  leader: {
    gone: [],
    lines: {
      'kernel/wire.ts': ['campaigns', 'leaderships', 'lead'],
      'kernel/lock-client.ts': ['campaign', 'leadership', 'lead'],
      'nest/redis-lock.service.ts': ['campaign', 'leadership'],
      'nest/module/create-lock-service.ts': ['campaigns'],
      'nest/module/redis-lock.module.ts': ['#leaderships'],
      'testing/pass-through/bind-locks.ts': ['campaign'],
      'testing/pass-through/pass-through-locks.ts': ['lead'],
      'index.ts': [],
    },
  },
  once: {
    gone: [],
    lines: {
      'kernel/lock-stores.ts': [],
      'memory/memory-lock-store.ts': ['results'],
      'redis/script/scripts.ts': ['READ_RESULT', 'KEEP_RESULT', 'FORGET_RESULT'],
      'nest/service-parts.ts': [],
      'nest/redis-lock.service.ts': ['once', 'forget'],
      'nest/module/create-lock-service.ts': ['results'],
      'nest/module/on-redis.ts': ['results'],
      'nest/module/redis-lock.module.ts': [],
      'testing/fleet/test-instance.ts': ['results'],
      'testing/pass-through/pass-through-locks.ts': ['once', 'results'],
      'extras/races/locks/actor-process.ts': ['once', 'results'],
      'extras/races/locks/race-kit.ts': ['once'],
      'index.ts': [],
    },
  },
  watch: {
    with: ['once'],
    gone: [],
    lines: {
      'kernel/wire.ts': ['watches'],
      'kernel/lock-client.ts': ['watches'],
      'nest/redis-lock.service.ts': ['waitUntilFree'],
      'extras/races/locks/actor-process.ts': ['watches'],
    },
  },
  fleet: {
    gone: ['health.ts', ...SHOWN_BY],
    lines: {
      'kernel/wire.ts': ['operators', 'health', 'fleet', 'onBlocked', 'contention', 'deadlocks'],
      'kernel/lock-client.ts': ['operators', 'health', 'fleet', 'report', 'inspect'],
      'kernel/events/telemetry.ts': ['onBlocked'],
      'nest/redis-lock.service.ts': ['inspect', 'list', 'fleet', 'health', 'explain', 'contention', 'forceRelease'],
      'nest/module/create-lock-service.ts': ['contention'],
      'nest/module/module-options.ts': ['contention'],
      'extras/telemetry/lock-metrics.ts': ['onBlocked'],
      'index.ts': [],
    },
  },
  jobs: {
    gone: ['schedule.ts', 'quorum/quorum-claims.ts', 'features/fleet/core/findings/job-findings.ts', ...SHOWN_BY],
    lines: {
      'kernel/wire.ts': ['jobs'],
      'kernel/lock-client.ts': ['jobs', 'SEEN_RUNS'],
      'kernel/lock-stores.ts': ['jobs'],
      'memory/memory-lock-store.ts': ['jobs'],
      'memory/memory-server.ts': ['OF_JOBS'],
      'redis/script/scripts.ts': [
        'ClaimReply',
        'FINISH_TICK',
        'END_RUN',
        'INDEX_JOBS',
        'LOOK_JOBS',
        'REGISTER_JOB',
        'CHANGE_REQUEST',
        'NOTE_MISSED',
        'PAUSE_JOB',
        'EXCHANGE_CLAIM',
      ],
      'nest/service-parts.ts': ['jobs', 'ownJobs'],
      'nest/redis-lock.service.ts': ['runSingleton'],
      'nest/handlers/answers.ts': [],
      'nest/log/start-log.ts': [],
      'nest/module/create-lock-service.ts': ['jobs', 'singletonRuns'],
      'nest/module/on-redis.ts': ['jobs'],
      'nest/module/on-quorum.ts': ['jobs', 'claimNodes'],
      'nest/module/redis-lock.module.ts': ['jobs'],
      'features/fleet/core/findings/finding.ts': ['SeenJob', 'SEEN_RUNS'],
      'features/fleet/core/findings/findings.ts': ['SeenJob', 'jobs'],
      'features/fleet/core/findings/instance-findings.ts': ['SeenJob', 'jobs'],
      'features/fleet/core/findings/survey.ts': ['SeenJob', 'jobs'],
      'testing/test-locks.ts': ['jobs'],
      'testing/fleet/test-instance.ts': ['jobs'],
      'testing/pass-through/bind-locks.ts': ['runSingleton'],
      'testing/pass-through/pass-through-locks.ts': ['singletonRuns'],
      'extras/races/locks/actor-process.ts': ['jobs', 'singletonRuns'],
      'extras/races/locks/race-kit.ts': ['singletonRuns'],
      'index.ts': [],
      'testing.ts': [],
    },
  },
};
