import { Redis } from 'ioredis';
import { safeOptions } from '../../../lib/redis/connection/ioredis-options.js';
import { ServerConnection } from '../../../lib/redis/connection/server-connection.js';

/** As ioredis makes the error of a reply. */
function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

describe('a connection that is never made', () => {
  const model = new Redis({ host: 'redis.test', port: 7000, password: 'pw', lazyConnect: true });
  const connection = new ServerConnection(model, safeOptions('one', 30_000));

  it('says where it would be', () => {
    expect(() => connection.ready()).toThrow('not connected to Redis at redis.test:7000');
  });

  it('says why it breaks, where ioredis only says that a command was not written', () => {
    const readonly = connection.explain(replyError("READONLY You can't write against a read only replica."));
    expect(readonly).toMatchObject({ failure: 'notExecuted', message: expect.stringMatching(/^READONLY.*primary$/) });
    const notWritten = connection.explain(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
    expect(notWritten).toMatchObject({
      failure: 'notExecuted',
      message: `not connected to Redis at redis.test:7000 (${readonly.message})`,
    });
  });
});
