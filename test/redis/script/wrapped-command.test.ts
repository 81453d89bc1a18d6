import type { Command, Redis } from 'ioredis';
import { ASKING } from '../../../lib/redis/script/script-runner.js';
import { type ScriptCall, scriptOf } from '../../../lib/redis/script/script.js';

const call = {
  script: scriptOf('test', 'return 1'),
  keys: ['lock:{stock}'],
  args: ['shop/1/secret'],
  read: (reply: unknown) => reply,
} as unknown as ScriptCall<unknown>;

/** Redis's error if EVAL was renamed. It repeats the arguments. */
const UNKNOWN = "ERR unknown command 'eval', with args beginning with: 'return 1' '1' 'lock:{stock}' 'shop/1/secret' ";

/** As the ioredis instrumentations of OpenTelemetry and Sentry do it: what rejects the command is read, and replaced. */
function wrap(command: Command, seen: string[]): void {
  const original = command.reject;
  command.reject = (error) => {
    seen.push((error as Error).message);
    original(error);
  };
}

it.each([1, 2])('a command that %d instrumentations have wrapped fails once, and shows no owner', async (times) => {
  const seen: string[] = [];
  const client = {
    asking: () => Promise.resolve(),
    sendCommand(command: Command) {
      for (let i = 0; i < times; i++) wrap(command, seen);
      command.reject(new Error(UNKNOWN));
      return command.promise;
    },
  } as unknown as Redis;
  const error = await ASKING.send(client, call, (reason) => Promise.resolve(reason));
  expect(seen).toHaveLength(times);
  for (const message of [...seen, (error as Error).message]) {
    expect(message).toContain('unknown command');
    expect(message).not.toContain('secret');
  }
});
