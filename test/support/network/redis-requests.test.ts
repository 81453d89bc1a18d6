import { commandOf, endsWithError, isScript, Marker, requestOf, RequestSplitter } from './redis-requests.js';

const SENT = [requestOf('AUTH', 'user', 'pw'), requestOf('evalsha', 'sha', '1', 'a\r\n*1\r\n', ''), requestOf('PING')];

describe('what a client sends to Redis', () => {
  it('is split into the same requests, wherever the network divides it', () => {
    const all = Buffer.from(SENT.join(''));
    for (let at = 0; at <= all.length; at++) {
      const splitter = new RequestSplitter();
      const found = [all.subarray(0, at), all.subarray(at)].flatMap((chunk) => splitter.push(chunk));
      expect(found.map(String)).toEqual(SENT);
    }
    const splitter = new RequestSplitter();
    const found = [...all].flatMap((byte) => splitter.push(Buffer.from([byte])));
    expect(found.map(String)).toEqual(SENT);
  });

  it('passes as it comes when it is not a request', () => {
    expect(new RequestSplitter().push(Buffer.from('PING\r\nPI')).map(String)).toEqual(['PING\r\nPI']);
  });

  it('has names', () => {
    expect(SENT.map((text) => commandOf(Buffer.from(text)))).toEqual(['auth', 'evalsha', 'ping']);
    expect(SENT.map((text) => isScript(Buffer.from(text)))).toEqual([false, true, false]);
    expect(isScript(Buffer.from(requestOf('eval_ro', '')))).toBe(false);
  });
});

describe('what Redis replies', () => {
  it('is divided at the error that the marker brings', () => {
    const marker = new Marker();
    const name = commandOf(marker.request);
    const error = `-ERR unknown command '${name}', with args beginning with: \r\n`;
    const replies = Buffer.from(`+OK\r\n-ERR other\r\n:1\r\n${error}:2\r\n`);
    expect(marker.split(replies)).toEqual({
      before: Buffer.from('+OK\r\n-ERR other\r\n:1\r\n'),
      after: Buffer.from(':2\r\n'),
    });
    const end = replies.length - ':2\r\n'.length;
    for (let length = 0; length < end; length++) expect(marker.split(replies.subarray(0, length))).toBeUndefined();
    expect(new Marker().split(replies)).toBeUndefined();
  });

  it.each([
    ['-NOSCRIPT No\r\n', true],
    [':1\r\n-ERR a\r\n', true],
    ['-ERR a\r\n:1\r\n', false],
    ['-ERR a\r\n:-1\r\n', false],
    ['', false],
  ])('ends with an error or not: %j', (replies, expected) => {
    expect(endsWithError(Buffer.from(replies))).toBe(expected);
  });
});
