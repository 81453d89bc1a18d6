import { AsyncLocalStorage } from 'node:async_hooks';

const storages = Array.from({ length: 3 }, () => new AsyncLocalStorage<number>());

/** The file is loaded again, as before the next test file. */
async function nextFile(): Promise<void> {
  await import(`./forget-contexts.mjs?${Math.random()}`);
}

describe('the async contexts of a test file', () => {
  it('are out of service for the next file, and serve again where they are used', async () => {
    for (const [index, storage] of storages.entries()) storage.enterWith(index);
    expect(storages.map((storage) => storage.getStore())).toEqual([0, 1, 2]);
    await nextFile();
    expect(storages.map((storage) => storage.getStore())).toEqual([undefined, undefined, undefined]);
    expect(storages[0]!.run(7, () => storages[0]!.getStore())).toBe(7);
  });
});
