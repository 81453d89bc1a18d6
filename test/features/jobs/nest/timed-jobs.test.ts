import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { SingletonInterval, type SingletonRun, SingletonTimeout } from 'nestjs-redis-lock/schedule';
import { eventually } from '../../../support/expect/eventually.js';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

describe('an interval or a timeout with a name before its milliseconds', () => {
  const start = useApps();

  it('is a job of that name for the scheduler and the fleet, as in @nestjs/schedule', async () => {
    const ran: string[] = [];
    class Jobs {
      @SingletonInterval('poll', 100)
      async poll({ job }: SingletonRun): Promise<void> {
        ran.push(job);
      }

      @SingletonInterval('wait', 60_000, { overlap: 'wait' })
      async wait(): Promise<void> {}

      @SingletonTimeout('warm', 0, { dedupeWindowMs: 1_000 })
      async warm({ job }: SingletonRun): Promise<void> {
        ran.push(job);
      }
    }
    const { app, log } = await start({ imports: [ScheduleModule.forRoot(), inMemory()], providers: [Jobs] });
    const registry = app.get(SchedulerRegistry);
    expect([registry.getIntervals(), registry.getTimeouts()]).toEqual([['poll', 'wait'], ['warm']]);
    await eventually(() => expect(new Set(ran)).toEqual(new Set(['poll', 'warm'])));
    expect(log.at('warn')).toEqual([]);
  });

  const decorate = (decorator: (...args: never[]) => unknown, ...args: unknown[]) =>
    (decorator as (...args: unknown[]) => unknown)(...args);

  it.each([SingletonInterval, SingletonTimeout])('needs its milliseconds: %p', (decorator) => {
    const unit = decorator === SingletonInterval ? 'intervalMs' : 'timeoutMs';
    expect(() => decorate(decorator, 'poll')).toThrow(`${unit} must be an integer`);
    expect(() => decorate(decorator, 'poll', { overlap: 'wait' })).toThrow(`${unit} must be an integer`);
    expect(() => decorate(decorator, 'poll', '1000')).toThrow(`${unit} must be an integer`);
    expect(() => decorate(decorator)).toThrow(`${unit} must be an integer`);
  });

  it.each([SingletonInterval, SingletonTimeout])('has one name: %p', (decorator) => {
    expect(() => decorate(decorator, 'poll', 1_000, { name: 'other' })).toThrow(
      'The name of a job is stated twice: "poll" and "other". Leave it out of the options.',
    );
  });

  it.each([SingletonInterval, SingletonTimeout])(
    'has a valid name, and options that are an object: %p',
    (decorator) => {
      const define = (...args: unknown[]) => {
        class Jobs {
          @(decorate(decorator, ...args) as MethodDecorator)
          async run(): Promise<void> {}
        }
        return Jobs;
      };
      expect(() => define('', 1_000)).toThrow('name must be 1 to 200 characters');
      expect(() => define(1_000, 'poll')).toThrow(
        'The schedule of Jobs.run must be an object, not a text. For the name of the job, write { name: "poll" }',
      );
      for (const options of [null, 'nightly', 5]) {
        expect(() => define('poll', 1_000, options)).toThrow('The schedule of Jobs.run must be an object');
      }
    },
  );
});
