// The first compiler error for a mistake in an application. All of them: test/nest/types.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { compile } from '../compile.mjs';

const IMPORTS = `import { DistributedLock, LeaderOnly, LockHandler, RedisLockModule, type RedisLockService } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
declare const locks: RedisLockService;
export const shown = [DistributedLock, LeaderOnly, LockHandler, RedisLockModule, SingletonCron, () => locks];
`;

const method = (text) => `export class Shop {\n${text}\n}\n`;

/** Each with what the first line of the compiler's answer has to name. */
const MISTAKES = [
  [method("@DistributedLock({ key: 'x', leasMs: 1_000 }) async pay() {}"), /'leasMs'.*Did you mean.*'leaseMs'/],
  [method("@LockHandler({ key: 'x', permits: 3, waitMS: 1 }) async pay() {}"), /'waitMS'.*Did you mean.*'waitMs'/],
  [method("@SingletonCron('* * * * *', { timezone: 'UTC' }) async run() {}"), /'timezone'.*Did you mean.*'timeZone'/],
  [
    method("@DistributedLock({ key: 'x', waitMs: '5s' }) async pay() {}"),
    /'string' is not assignable to type 'number'/,
  ],
  [method('@DistributedLock((id: string) => id) async pay(id: number) {}'), /key function must take the parameters/],
  [method("@DistributedLock({ key: 'x', onBusy: 'skip' }) async count(): Promise<number> { return 1; }"), /undefined/],
  [method("@DistributedLock('x') count() { return 1; }"), /must be async/],
  ["RedisLockModule.forRoot({ connection: 'memory:', leasMs: 1_000 });", /'leasMs'.*Did you mean.*'leaseMs'/],
  ['RedisLockModule.forRoot({});', /'\{\}' is not assignable to .*WithConnectionOrQuorum/],
  [
    "RedisLockModule.forRootAsync({ useFactory: () => ({ connection: 'memory:', leasMs: 1_000 }) });",
    /an option that the module does not know: leasMs/,
  ],
  ["void locks.using('x', async () => {}, { waitMs: 0 });", /'LockOptions'/],
  ["RedisLockModule.forRoot({ host: 'redis', port: 6379 });", /'host' does not exist/],
  ["RedisLockModule.forRoot({ url: 'redis://redis' });", /'url' does not exist/],
  ['RedisLockModule.forRoot({ client: locks });', /'client' does not exist/],
  ["RedisLockModule.forRoot({ connection: 'memory:', ttl: 5_000 });", /'ttl' does not exist/],
  [method('@DistributedLock({ waitMs: 1_000 }) async pay() {}'), /'\{ waitMs: number; \}' is not assignable/],
  [method("@DistributedLock({ keys: ['a', 'b'] }) async pay() {}"), /'\{ keys: string\[\]; \}' is not assignable/],
  [method("@DistributedLock('a', { waitMs: 1_000 }) async pay() {}"), /Expected 1 arguments, but got 2/],
  [method("@SingletonCron('0 0 * * *', 'nightly') async run() {}"), /'"nightly"' is not assignable/],
  [method("@DistributedLock('a') pay = async () => {};"), /property decorator/],
  ["void locks.using('a', 5_000, () => 1);", /'5000' has no properties in common with type 'LockOptions'/],
  ["void import('nestjs-redis-lock').then(({ SingletonCron: it }) => it);", /'SingletonCron' does not exist/],
  [
    "void import('nestjs-redis-lock').then(({ RedisLockService: It }) => new It('redis://redis'));",
    /'string' is not assignable to parameter of type 'ServiceParts'/,
  ],
  ["void locks.acquire('x', { waitms: 0 });", /'waitms'.*Did you mean.*'waitMs'/],
];

export async function checkMistakes({ folder }) {
  const where = join(folder, 'test/mistakes');
  await mkdir(where);
  await Promise.all(MISTAKES.map(([text], index) => writeFile(join(where, `${index}.ts`), IMPORTS + text)));
  const project = {
    extends: '../../tsconfig.json',
    compilerOptions: { noEmit: true, rootDir: '../..' },
    include: ['.', '../*.ts'],
  };
  await writeFile(join(where, 'tsconfig.json'), JSON.stringify(project));
  const output = await compile(folder, join(where, 'tsconfig.json'));
  const failures = MISTAKES.flatMap(([text, says], index) => {
    const first = output.split('\n').find((line) => line.startsWith(`${index}.ts(`));
    return first !== undefined && says.test(first) ? [] : [`${text}\nexpected ${says}\n${first}`];
  });
  // The specs are as users write them.
  assert.doesNotMatch(output, /^\.\.\//m);
  assert.equal(failures.length, 0, `${failures.join('\n\n')}\n\nAll answers:\n${output}`);
}
