import { prove } from '../src/prove.js';

it('the shop locks and schedules under Jest with ES modules', async () => {
  expect.assertions(1);
  await expect(prove()).resolves.toBeUndefined();
});
