import { Deferred } from '../../../lib/kernel/util/promises.js';
import { KeyOrder } from '../../../lib/redis/durability/durable-server.js';
import { rejection } from '../../support/expect/eventually.js';

describe('commands that leave by different connections', () => {
  const order = new KeyOrder();
  const sent: string[] = [];
  const commands = new Map<string, { executed: () => void; answer: Deferred<string> }>();
  beforeEach(() => sent.splice(0));

  const send = (keys: string, name: string): Promise<string> =>
    order.run(keys.split(' '), (executed) => {
      const answer = new Deferred<string>();
      commands.set(name, { executed, answer });
      sent.push(name);
      return answer.promise;
    });
  const microtasks = () => new Promise(setImmediate);

  it('leave at once for different keys', () => {
    for (const key of ['a', 'b']) {
      void send(key, `of ${key}`);
      expect(sent).toContain(`of ${key}`);
    }
    for (const { answer } of commands.values()) answer.resolve('');
  });

  it('wait for the one before of the same key: until it is executed, not until it is answered', async () => {
    const answers = [send('a', 'first'), send('a', 'second'), send('a', 'third')];
    expect(sent).toEqual(['first']);
    commands.get('first')!.executed();
    await microtasks();
    expect(sent).toEqual(['first', 'second']);
    commands.get('second')!.answer.reject(new Error('the connection broke'));
    expect((await rejection(answers[1]!)).message).toBe('the connection broke');
    await microtasks();
    expect(sent).toEqual(['first', 'second', 'third']);
    commands.get('first')!.answer.resolve('one');
    commands.get('third')!.answer.resolve('three');
    expect(await Promise.all([answers[0], answers[2]])).toEqual(['one', 'three']);
  });

  it('wait for those before of each of their keys, if they have several', async () => {
    void send('a', 'of a');
    void send('b', 'of b');
    void send('a b', 'of both');
    void send('b', 'after both');
    commands.get('of a')!.executed();
    await microtasks();
    expect(sent).toEqual(['of a', 'of b']);
    commands.get('of b')!.executed();
    await microtasks();
    expect(sent).toEqual(['of a', 'of b', 'of both']);
    commands.get('of both')!.executed();
    await microtasks();
    expect(sent).toEqual(['of a', 'of b', 'of both', 'after both']);
    for (const { answer } of commands.values()) answer.resolve('');
    await microtasks();
  });

  it('leave nothing behind', () => {
    expect(order.size).toBe(0);
  });
});
