import fc from 'fast-check';
import type { PushedGrant } from '../../lib/kernel/store/message-health.js';
import { sealOf } from '../../lib/redis/grant-seal.js';
import { readMessage } from '../../lib/redis/inbox.js';
import { encodeResource } from '../../lib/redis/keys.js';
import { runs } from '../support/simulation/runs.js';

/** Names that are made to look like another message. */
const hostile = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
  fc
    .array(fc.constantFrom('free', ' ', '1', '2 3', 'a/b', '/', '%20', '\n', '{', '\u2028', 'x'), {
      minLength: 1,
      maxLength: 8,
    })
    .map((parts) => parts.join('')),
);
const number = fc.nat(10 ** 9);
const client = fc.constantFrom('free/x', 'host:1:abc/Ab-_9', '1/2', 'a.b@c/0');

const SEAL = 'ab'.repeat(20);

function grantIn(message: string): PushedGrant {
  const said = readMessage(message);
  if (!said || !('grant' in said)) throw new Error(`no grant: ${message}`);
  return said.grant;
}

describe('a message in the inbox', () => {
  it('about a grant says of each owner whether it is for it, and is never taken for another message', () => {
    fc.assert(
      fc.property(hostile, number, number, client, (resource, token, sentAt, clientId) => {
        const owner = `${clientId}/S3cret_-`;
        const message = `${sealOf(`${token} ${sentAt}`, owner)} ${token} ${sentAt} ${encodeResource(resource)}`;
        const { isFor, ...grant } = grantIn(message);
        expect(grant).toEqual({ fencingToken: token, sentAt, resource });
        expect(isFor(owner)).toBe(true);
        expect(isFor(`${clientId}/another`)).toBe(false);
        expect(message).not.toContain('S3cret_-');
      }),
      { seed: 20_260_101, numRuns: runs(1_000) },
    );
  });

  it('about a grant is for nobody any more once its token or its stamp was changed', () => {
    fc.assert(
      fc.property(number, number, number, number, (token, sentAt, otherToken, otherStamp) => {
        fc.pre(token !== otherToken || sentAt !== otherStamp);
        const message = `${sealOf(`${token} ${sentAt}`, 'a/b/c')} ${otherToken} ${otherStamp} x`;
        expect(grantIn(message).isFor('a/b/c')).toBe(false);
      }),
      { seed: 20_260_101, numRuns: runs(1_000) },
    );
  });

  it('about what is left of a minimum says for whom it is, and cannot be made a grant', () => {
    fc.assert(
      fc.property(hostile, number, number, client, (resource, leftMs, sentAt, clientId) => {
        const owner = `${clientId}/S3cret_-`;
        const [seal, name] = [sealOf(`kept ${leftMs} ${sentAt}`, owner), encodeResource(resource)];
        const said = readMessage(`${seal} kept ${leftMs} ${sentAt} ${name}`);
        if (!said || !('notice' in said)) throw new Error('no notice');
        const { isFor, ...notice } = said.notice;
        expect(notice).toEqual({ resource, leftMs, sentAt });
        expect(isFor(owner)).toBe(true);
        expect(isFor(`${clientId}/another`)).toBe(false);
        expect(grantIn(`${seal} ${leftMs} ${sentAt} ${name}`).isFor(owner)).toBe(false);
        const longer = readMessage(`${seal} kept ${leftMs + 1} ${sentAt} ${name}`);
        expect(longer && 'notice' in longer && longer.notice.isFor(owner)).toBe(false);
      }),
      { seed: 20_260_101, numRuns: runs(1_000) },
    );
  });

  it('that is a probe is passed on whole, and is no grant', () => {
    const text = `probe ${'Ab-_'.repeat(5)}09 17`;
    expect(readMessage(text)).toEqual({ probe: text });
  });

  it.each([
    '',
    'probe',
    'probe  1',
    'probe x 1',
    `probe ${'a'.repeat(22)}`,
    `probe ${'a'.repeat(22)} x`,
    `probe ${'a'.repeat(22)} 1 stock`,
    `probe ${'a'.repeat(22)} ${'1'.repeat(17)}`,
    `probe ${'/'.repeat(22)} 1`,
    `${SEAL} kept 1 2 `,
    `${SEAL} kept 1 x`,
    `${SEAL} kept -1 2 x`,
    `kept ${SEAL} 1 2 x`,
    'latch 5 x',
    'a/b 1 x',
    'a/b/s3cret 1 2 x',
    `${SEAL} 1 2 `,
    `${SEAL} 12345678901234567 2 x`,
    `${SEAL.toUpperCase()} 1 2 x`,
    `${SEAL}0 1 2 x`,
    `${SEAL} 1 2 ${'x'.repeat(2_000)}`,
  ])('that is none of ours says nothing: %j', (message) => {
    expect(readMessage(message)).toBeUndefined();
  });
});
