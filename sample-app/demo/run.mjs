// @ts-check
// The demo: three instances of the shop on the Redis at REDIS_URL. `npm run demo` brings that, and the build.
// Exit code 1: something was not as promised. Takes about a minute.
// `--stay` keeps the shops open at its end, so that you can look at the console. Ctrl-C ends them.
// POSTGRES_DATA is the file of an empty data folder, which saves the seconds that it takes to make one.
// `--picture <file>` saves the table as an SVG, if all was as promised: `npm run demo -- --picture docs/demo.svg`.
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { Fleet } from './fleet.mjs';
import { OPERATOR_KEY } from './shop-process.mjs';
import { leaveNoTrace } from './leave-no-trace.mjs';
import { startPostgres } from './postgres.mjs';
import { savePicture } from './picture.mjs';
import { adviceScene } from './scenes/advice.mjs';
import { bestsellersScene } from './scenes/bestsellers.mjs';
import { catalogueScene } from './scenes/catalogue.mjs';
import { contentionScene } from './scenes/contention.mjs';
import { crashScene } from './scenes/crash.mjs';
import { drawScene, duplicateDraws } from './scenes/draw.mjs';
import { exportsScene } from './scenes/exports.mjs';
import { mailerScene } from './scenes/mailer.mjs';
import { nightScene } from './scenes/night.mjs';
import { pauseScene } from './scenes/pause.mjs';
import { rushScene } from './scenes/rush.mjs';
import { operatorScene, tillScene } from './scenes/jobs.mjs';
import { heading, say, seconds, table } from './screen.mjs';

const { picture, stay } = parseArgs({ options: { picture: { type: 'string' }, stay: { type: 'boolean' } } }).values;
const redisUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
const shop = `demo-${randomBytes(4).toString('hex')}`;
const INSTANCES = [{ name: 'shop-1' }, { name: 'shop-2' }, { name: 'shop-3', clockSkewMs: -400 }];
const postgres = await startPostgres(process.env.POSTGRES_DATA);
const fleet = new Fleet(INSTANCES, {
  REDIS_URL: redisUrl,
  DATABASE_URL: postgres.url,
  SHOP: shop,
  LOCK_WAIT_MS: '20000',
  DRAW_SCHEDULE: '* * * * * *',
  REPORT_SCHEDULE: '*/4 * * * * *',
  REPORT_PAGE_MS: '400',
  TILL_SCHEDULE: '*/2 * * * * *',
  BANK_MS: '1000',
});

async function play() {
  const began = performance.now();
  heading('Three instances of a shop, one Redis');
  await fleet.start();
  for (const [index, { name, url, pid }] of fleet.shops.entries()) {
    const skewMs = INSTANCES[index]?.clockSkewMs;
    say(`${name}  ${url}  pid ${pid}${skewMs ? `  its clock is ${-skewMs} ms slow` : ''}`);
  }
  say(`the console  ${consoleAddress()}`);
  heading('1. A rush: 60 orders for 20 units of tea, over all instances');
  const findings = await rushScene(fleet);
  heading('2. A catalogue that many read and one edits, @ReadLock and @WriteLock');
  findings.push(...(await catalogueScene(fleet)));
  heading('3. Exports, at most three at once over all instances, @DistributedSemaphore');
  findings.push(...(await exportsScene(fleet)));
  heading('4. Five cold instances, and everybody wants the bestsellers, @Once');
  findings.push(...(await bestsellersScene(fleet)));
  heading('5. One turn per chat: with a place in line, onWait, or for the newest message only, cancelHolder');
  findings.push(...(await adviceScene(fleet)));
  heading(
    '6. Who waits for whom? A customer whose points wait for his checkout, locks.explain() and locks.contention()',
  );
  findings.push(...(await contentionScene(fleet)));
  heading('7. A prize draw every second, @SingletonCron on every instance');
  findings.push(...(await drawScene(fleet)));
  heading('8. An operator pauses the prize draw, and has it drawn by hand, SingletonJobs');
  findings.push(...(await operatorScene(fleet)));
  heading('9. An instance is killed in the middle of the nightly report, and misses ticks of its own');
  const { findings: takenOver, killed } = await crashScene(fleet);
  findings.push(...takenOver, ...(await tillScene(fleet, killed)));
  heading('10. The instance that sends the mails is killed, @LeaderOnly');
  findings.push(...(await mailerScene(fleet)));
  heading('11. An instance is stopped between its last check and its COMMIT, fence.guard() in PostgreSQL (PGlite)');
  findings.push(...(await pauseScene(fleet)));
  heading('12. Three in the morning: npx nestjs-redis-lock status, and a migration once per deploy');
  findings.push(...(await nightScene(fleet, shop)));
  findings.push(await duplicateDraws(fleet));

  table(findings);
  const broken = findings.filter(({ isKept }) => isKept === false).length;
  const verdict = broken === 0 ? 'Everything as promised' : `${broken} not as promised`;
  const sentence = `${verdict}, in ${seconds(performance.now() - began)}.`;
  console.log(`\n  ${sentence}\n`);
  if (picture && broken === 0) await savePicture(picture, findings, sentence);
  if (stay) {
    say(`The console: ${consoleAddress()}  Ctrl-C ends the shops.`);
    await new Promise(() => {});
  }
  return broken === 0 ? 0 : 1;
}

/** The address of a running instance. Anyone who knows it may look, and act as `demo`. */
function consoleAddress() {
  const { url } = fleet.byTurns(0);
  return `${url.replace('://', `://demo:${OPERATOR_KEY}@`)}/operators/console/`;
}

let isStopped = false;

async function cleanUp() {
  isStopped = true;
  await fleet.kill();
  await leaveNoTrace(redisUrl, shop);
}

// The children that are still starting end with this process: see preload.mjs.
const SIGNALS = /** @type {const} */ ({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 });
for (const [signal, exitCode] of Object.entries(SIGNALS)) {
  process.once(signal, () => {
    say(`${signal}: stopping`);
    void cleanUp().finally(() => process.exit(exitCode));
  });
}

/** @param {Error} error */
function explain(error) {
  console.error(`\n${error.stack}`);
  for (const { name, logTail } of fleet.shops) console.error(`\nLast words of ${name}:\n${logTail}`);
  return 1;
}

const code = await play().catch((error) => (isStopped ? 1 : explain(error)));
if (!isStopped) {
  await cleanUp();
  process.exit(code);
}
