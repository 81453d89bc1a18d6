// The order of the test files: first the contract on a real Redis, which waits for most of its minute.
import TestSequencer from '@jest/test-sequencer';

export default class StoresFirst extends TestSequencer {
  sort(tests) {
    const isOnServers = ({ path }) => path.includes('/test/stores/');
    return super.sort(tests).toSorted((one, other) => Number(isOnServers(other)) - Number(isOnServers(one)));
  }
}
