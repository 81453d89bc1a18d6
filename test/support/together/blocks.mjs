// In the environment that several test files share: see runner.mjs.

/**
 * Loads each file inside a `describe` of its own, whose title is the number of the file. `describe` takes no function that waits, as
 * an import does, so the block is entered where Jest keeps the current one.
 */
export async function inBlocks(files) {
  const state = stateOfJest();
  const outer = state.currentDescribeBlock;
  for (const [index, load] of files.entries()) {
    describe(String(index), () => undefined);
    state.currentDescribeBlock = outer.children.at(-1);
    try {
      await load();
    } catch (error) {
      it('can be loaded', () => {
        throw error;
      });
    } finally {
      state.currentDescribeBlock = outer;
    }
  }
}

function stateOfJest() {
  const symbols = Object.getOwnPropertySymbols(globalThis);
  const symbol = symbols.find(({ description }) => description === 'JEST_STATE_SYMBOL');
  if (symbol === undefined) throw new Error('This version of jest-circus keeps its state elsewhere: see blocks.mjs.');
  return globalThis[symbol];
}
