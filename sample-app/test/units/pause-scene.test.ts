import { jest } from '@jest/globals';
import type { Fleet } from '../../demo/fleet.mjs';
import { type Closing, pauseScene } from '../../demo/scenes/pause.mjs';

beforeEach(() => jest.spyOn(console, 'log').mockImplementation(() => {}));
afterEach(() => jest.restoreAllMocks());

const LEASE_LOST = { status: 503, body: { code: 'LEASE_LOST', message: 'This was interrupted.' } };
const REFUSED = { status: 409, body: { error: 'StaleFencingTokenError', message: 'The write was refused. Drop it' } };

/** Two shops without processes. The first one gives one of these answers for each stop, when it is resumed. */
function twoShops(answers: (typeof REFUSED | typeof LEASE_LOST | { status: number; body: Closing })[]) {
  const closings: Closing[] = [];
  let stops = 0;
  let token = 0;
  let goOn = () => {};
  const get = async () => ({ body: { closings, lock: { holders: [{ instanceId: 'shop-1:7' }] } } });
  const sleeper = {
    name: 'shop-1',
    get,
    pause: () => void stops++,
    resume: () => goOn(),
    async post() {
      token++;
      await new Promise<void>((resolve) => (goOn = resolve));
      const answer = answers[stops - 1]!;
      if ('token' in answer.body) closings.push(answer.body);
      return answer;
    },
  };
  const other = {
    name: 'shop-2',
    get,
    async post() {
      const closing: Closing = { token: ++token, closedBy: 'shop-2' };
      closings.push(closing);
      return { status: 201, body: closing };
    },
  };
  const fleet = { other: (not?: unknown) => (not === sleeper ? other : sleeper) } as unknown as Fleet;
  return { fleet, stops: () => stops };
}

it('stops the holder once more where it was stopped before it began: then it does nothing, and writes nothing', async () => {
  const { fleet, stops } = twoShops([LEASE_LOST, REFUSED]);
  expect(await pauseScene(fleet)).toMatchObject([{ measured: 'refused', isKept: true }]);
  expect(stops()).toBe(2);
});

it('tells of a COMMIT with an older token than the last one', async () => {
  const { fleet } = twoShops([{ status: 201, body: { token: 1, closedBy: 'shop-1' } }]);
  expect(await pauseScene(fleet)).toMatchObject([{ measured: 'committed', isKept: false }]);
});
