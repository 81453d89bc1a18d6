import { explainSentinel } from '../../../lib/redis/connection/connection-trouble.js';

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

  it.each([
    [undefined, 'Connection is closed'],
    ['connect ECONNREFUSED 10.0.0.1:26379', 'connect ECONNREFUSED 10.0.0.1:26379'],
    [
      'self-signed certificate. Give the certificate of its authority in the connection option: tls: { ca }',
      'self-signed certificate. Give the certificate of its authority in the connection option: sentinelTLS: { ca }',
    ],
    [
      'the server closes the connection at once. If the port expects TLS, use rediss:// or tls in the connection option',
      'the server closes the connection at once. If the port expects TLS, give sentinelTLS in the connection option',
    ],
  ])('a connection that is closed because of: %s', (reason, explained) => {
    const message = 'failed to connect to sentinel 10.0.0.1:26379 because Connection is closed.';
    const reasons = (address: string) => (address === '10.0.0.1:26379' ? reason : 'of another one');
    expect(explainSentinel(message, 'locks', reasons)).toBe(
      `failed to connect to sentinel 10.0.0.1:26379 because ${explained}`,
    );
  });
});
