// The errors for mistakes of the first day: see consumers/first-hour/src/traps.ts.
import assert from 'node:assert/strict';
import { runProgram } from '../program.mjs';

const SAYS = {
  host: /InvalidLockOptionsError: .*"host"\. Put it into connection: \{ connection: \{ host: 'localhost', port: 6379 \} \}\./,
  url: /"url"\. Put it into connection: \{ connection: 'redis:\/\/localhost:6379' \}\./,
  client: /"client"\. Put it into connection: \{ connection: client \}\./,
  ttl: /ttl is called leaseMs here\./,
  'no key': /key is missing in the lock of Shop\.pay: .*Write key: 'reports'/,
  keys: /keys is called key here, and takes several names too/,
  'key and options': /@DistributedLock takes one argument, not 2\. Write the key into the options/,
  'name of a job': /must be an object, not a text\. For the name of the job, write \{ name: "nightly" \}\./,
  'arrow function': /is a property, and this decorator is for methods\..*Write a method: async pay\(\)/,
  'one key twice': /Twice\.pay is locked by "a" twice, .*Remove one of the two decorators\./,
  'new service': /LockModuleMissingError: RedisLockService is not made by new, .*inject the service/,
  'a number': /not 5000\. Say which time it is: \{ waitMs: 5000 \} or \{ leaseMs: 5000 \}\./,
  undefined: /InvalidResourceError: .*"order:undefined".*missing value.*key`order:\$\{id\}`.*suspiciousNames: 'allow'/,
  NaN: /InvalidResourceError: .*"order:NaN".*missing value/,
  null: /InvalidResourceError: .*"order:null".*missing value/,
  object: /InvalidResourceError: .*"order:\[object Object\]".*missing value/,
  'tag key': /InvalidResourceError: The key function of Orders\.refund threw: Value 1 of a key, after "order:", is/,
  'allowed names': /^nothing$/,
  deadlock:
    /LockTimeoutError: .*This call also holds "account:[xy]", and the holder waits for that: a deadlock.*docs\/guide\/several-resources\.md/,
  'Redis away': /LockUnavailableError: true .*Redis/,
};

/** The program has been compiled with the application. @returns {Promise<string>} all that it has printed */
export async function checkTraps({ folder, env }) {
  const options = { cwd: folder, env: { ...env, NO_COLOR: '1' } };
  const { code, output } = await runProgram(process.execPath, ['dist/traps.js'], options);
  const said = new Map([...output.matchAll(/^(.+?) -> (.*)$/gm)].map(([, name, text]) => [name, text]));
  const failures = Object.entries(SAYS).filter(([name, says]) => !says.test(said.get(name) ?? ''));
  assert.deepEqual([code, failures, said.size], [0, [], Object.keys(SAYS).length], output);
  assert.doesNotMatch(output, /hunter2/);
  return output;
}
