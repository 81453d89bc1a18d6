import fc from 'fast-check';
import { readMessage } from '../../../lib/redis/inbox.js';
import { encodeResource } from '../../../lib/redis/keys.js';

/** Names that are made to look like another message. */
const hostile = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
  fc
    .array(fc.constantFrom('latch', ' ', '1', '2 3', 'a/b', '/', '%20', '\n', '{', '\u2028', 'x'), {
      minLength: 1,
      maxLength: 8,
    })
    .map((parts) => parts.join('')),
);
const number = fc.nat(10 ** 9);
const client = fc.constantFrom('latch/x', 'host:1:abc/Ab-_9', '1/2', 'a.b@c/0');

describe('a message in the inbox', () => {
  it('about a latch says its name and its count, and is never taken for a grant', () => {
    fc.assert(
      fc.property(hostile, number, (name, count) => {
        expect(readMessage(`latch ${count} ${encodeResource(name)}`)).toEqual({ latch: { name, count } });
      }),
      { seed: 20_260_101, numRuns: 1_000 },
    );
  });

  it('about a grant says whose it is, and is never taken for a latch', () => {
    fc.assert(
      fc.property(hostile, number, number, client, (resource, token, sentAt, clientId) => {
        const owner = `${clientId}/S3cret_-`;
        expect(readMessage(`${owner} ${token} ${sentAt} ${encodeResource(resource)}`)).toEqual({
          grant: { owner, fencingToken: token, sentAt, resource },
        });
      }),
      { seed: 20_260_101, numRuns: 1_000 },
    );
  });

  it.each([
    '',
    'latch',
    'latch ',
    'latch 5',
    'latch 5 ',
    'latch five x',
    'latch -1 2 3 x',
    'latch a/b 2 3 x',
    'latches 5 x',
    'a/b 1 x',
  ])('that is none of ours says nothing: %j', (message) => {
    expect(readMessage(message)).toBeUndefined();
  });
});
