import { Deferred } from '../../../lib/kernel/util/promises.js';
import { KeyOrder } from '../../../lib/redis/durability/durable-server.js';
import { rejection } from '../../support/expect/eventually.js';

describe('commands that leave by different connections', () => {
  const order = new KeyOrder();
  const sent: string[] = [];
  const commands = new Map<string, { executed: () => void; answer: Deferred<string> }>();
  beforeEach(() => sent.splice(0));

  const send = (key: string, name: string): Promise<string> =>
    order.run(key, (executed) => {
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
    expect(sent).toEqual(['first', 'second', 'third']);
    commands.get('first')!.answer.resolve('one');
    commands.get('third')!.answer.resolve('three');
    expect(await Promise.all([answers[0], answers[2]])).toEqual(['one', 'three']);
  });

  it('leave nothing behind', () => {
    expect(order.size).toBe(0);
  });
});
