import { explainSentinel } from '../../../lib/redis/primary-watch.js';

describe('why a sentinel did not name the primary', () => {
  it.each([
    [
      'failed to connect to sentinel 10.0.0.1:26379 because ERR No such master with that name',
      'the sentinel at 10.0.0.1:26379 knows no primary "locks"',
    ],
    [
      'connected to sentinel 10.0.0.1:26379 successfully, but got an invalid reply: null',
      'the sentinel at 10.0.0.1:26379 knows no primary "locks"',
    ],
    [
      'failed to connect to sentinel 10.0.0.1:26379 because NOAUTH Authentication required.',
      'failed to connect to sentinel 10.0.0.1:26379 because NOAUTH Authentication required. Give sentinelPassword, and ' +
        'sentinelUsername, in the connection option',
    ],
    [
      'failed to connect to sentinel 10.0.0.1:26379 because connect ECONNREFUSED 10.0.0.1:26379',
      'failed to connect to sentinel 10.0.0.1:26379 because connect ECONNREFUSED 10.0.0.1:26379',
    ],
  ])('%s', (message, explained) => {
    expect(explainSentinel(message, 'locks')).toBe(explained);
  });
});
