import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule, type ScheduleModuleOptions } from '@nestjs/schedule';
import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

@Injectable()
class Reports {
  @SingletonCron('0 0 0 1 1 *')
  async yearly(): Promise<void> {}

  @SingletonInterval(60_000, { name: 'often' })
  async often(): Promise<void> {}

  @SingletonTimeout(60_000, { name: 'once' })
  async once(): Promise<void> {}
}

@Injectable()
class Nightly {
  @SingletonCron('0 0 0 1 1 *', { name: 'nightly', service: 'billing' })
  async run(): Promise<void> {}
}

describe('singleton jobs that the scheduler does not run', () => {
  const start = useApps();
  const billing = () => inMemory({ service: 'billing' });

  it('cause a warning if ScheduleModule is not imported, one for each lock service', async () => {
    const { log } = await start({ imports: [inMemory(), billing()], providers: [Reports, Nightly] });
    expect(log.lines.filter(({ level }) => level === 'warn')).toEqual([
      {
        level: 'warn',
        context: 'RedisLockModule',
        message:
          'ScheduleModule is not imported, so 3 singleton jobs "Reports.yearly", "often", "once" will never be ' +
          'scheduled. Import ScheduleModule.forRoot() of @nestjs/schedule in the root module.',
      },
      {
        level: 'warn',
        context: 'RedisLockModule',
        message:
          'ScheduleModule is not imported, so the singleton job "nightly" will never be scheduled. Import ' +
          'ScheduleModule.forRoot() of @nestjs/schedule in the root module.',
      },
    ]);
  });

  it('cause no warning with it, wherever it is imported, nor without a job', async () => {
    @Module({ imports: [ScheduleModule.forRootAsync({ useFactory: async () => ({}) })] })
    class Elsewhere {}
    const imports = [inMemory(), billing()];
    const { log } = await start({ imports: [...imports, Elsewhere], providers: [Reports, Nightly] });
    const without = await start({ imports });
    expect([...log.at('warn'), ...without.log.at('warn')]).toEqual([]);
    expect(log.at('log').filter((line) => line.includes('will not be scheduled'))).toEqual([]);
  });

  it.each<[ScheduleModuleOptions, string[]]>([
    [{ cronJobs: false }, ['cronJobs: false, so the singleton job "Reports.yearly"']],
    [{ intervals: false }, ['intervals: false, so the singleton job "often"']],
    [{ timeouts: false }, ['timeouts: false, so the singleton job "once"']],
    [
      { cronJobs: false, timeouts: false },
      ['cronJobs: false, so the singleton job "Reports.yearly"', 'timeouts: false, so the singleton job "once"'],
    ],
  ])('are logged if it is intended: ScheduleModule with %j', async (options, expected) => {
    const { log } = await start({ imports: [ScheduleModule.forRoot(options), inMemory()], providers: [Reports] });
    const lines = log.at('log').filter((line) => line.startsWith('ScheduleModule has'));
    expect(lines).toEqual(expected.map((text) => `ScheduleModule has ${text} will not be scheduled here.`));
    expect(log.at('warn')).toEqual([]);
  });
});

const LIB = join(dirname(fileURLToPath(import.meta.url)), '../../../../lib');
/** Imports that remain at run time, so none of types. */
const IMPORT = /^(?:import|export) (?!type )(?:[^'";]*? from )?'([^']+)';/gm;

/** All packages that a file needs at run time, with the files that name them. */
function packagesOf(entry: string): Map<string, string[]> {
  const packages = new Map<string, string[]>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, named] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      if (named!.startsWith('.')) visit(join(dirname(file), named!.replace(/\.js$/, '.ts')));
      else packages.set(named!, [...(packages.get(named!) ?? []), file.slice(LIB.length + 1)]);
    }
  };
  visit(join(LIB, entry));
  return packages;
}

describe('@nestjs/schedule', () => {
  it('is needed by nestjs-redis-lock/schedule only: applications without jobs do not install it', () => {
    expect(packagesOf('index.ts').get('@nestjs/schedule')).toBeUndefined();
    expect(packagesOf('index.ts').get('@nestjs/common')).toBeDefined();
    expect(packagesOf('schedule.ts').get('@nestjs/schedule')).toBeDefined();
  });
});
