import type { Run } from '../demo/scenes/draw.mjs';
import { useRedis } from '../../test/support/redis/redis-server.js';
import { eventually } from '../../test/support/expect/eventually.js';
import { useFleet } from './use-fleet.js';

const redis = useRedis();
const fleet = useFleet(
  redis,
  [{ name: 'shop-1' }, { name: 'shop-2', clockSkewMs: 400 }, { name: 'shop-3', clockSkewMs: -400 }],
  { DRAW_SCHEDULE: '* * * * * *', REPORT_SCHEDULE: '*/4 * * * * *', REPORT_PAGE_MS: '500' },
);

async function runsOf(job: string): Promise<Run[]> {
  return (await fleet().other().get(`/jobs/${job}/runs`)).body;
}

it('draws a prize once every second, though the clocks of the instances differ', async () => {
  const first = Math.ceil(Date.now() / 1_000 + 1) * 1_000;
  const ticks = [0, 1, 2, 3].map((i) => new Date(first + i * 1_000).toISOString());
  const after = new Date(first + 4_000).toISOString();
  await eventually(async () => {
    const drawn = (await runsOf('prize-draw')).map(({ tick }) => tick);
    expect(drawn).toEqual(expect.arrayContaining([...ticks, after]));
  });
  const drawn = (await runsOf('prize-draw')).map(({ tick }) => tick).filter((tick) => ticks.includes(tick));
  expect(drawn.toSorted()).toEqual(ticks);
});

it('writes the report on another instance when the one that writes it is killed', async () => {
  const { body: before } = await fleet().other().get('/report');
  const begun = await eventually(async () => {
    const { body: report } = await fleet().other().get('/report');
    expect(report).toMatchObject({ pages: 1, finished: false });
    expect(report.tick).not.toBe(before.tick);
    return report;
  });
  const writer = fleet().named(begun.instance)!;
  await writer.kill();
  const rerun = await eventually(async () => {
    const found = (await runsOf('nightly-report')).find(({ tick, rerun: again }) => tick === begun.tick && again);
    expect(found).toBeDefined();
    return found!;
  });
  expect(rerun.instance).not.toBe(writer.name);
  await eventually(async () => {
    const { body: report } = await fleet().other().get('/report');
    expect(report).toMatchObject({ tick: begun.tick, instance: rerun.instance, finished: true });
  });
}, 60_000);
