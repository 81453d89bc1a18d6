import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '7d19ca2cfe5749a1af134d293c027e941ce4cd73 30653',
  acquireSeveral: '8c7322cb34c3c87c20c1b27b4b0eaf6373ec2513 30060',
  claimTick: 'f95a294e8ea9bd9bb8cd7034b22c1fbd5f7856f0 18830',
  countDown: '3ea8c8d3ab26568852adfa1bbcc4b9baddf31f57 2758',
  downgrade: 'c87b20f971088ee66d267e7973d24ffe31ae326e 19794',
  endRun: 'cf77f2bc2e4022a800b6b5d76a0cc3d5c1889ee7 21218',
  exchangeClaim: 'e40a0abc0d9ba91ca3626652bd43d76c24b0f6c4 2087',
  finishTick: '90bd15ad7927428e75cac0751c48e559b99006a2 1668',
  forceRelease: '7efa3f0810c27a31c55c7ffbef06f71fb92ad9f9 18892',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: '730411c5ab54dfc6c787aab0b2dc53ebadbd4017 651',
  inspect: '04089790e9bd7f2b791f473206ae0f1061ac7426 5038',
  keep: '3eb5b332c0e8e43a7c6769c2350a3259f5b49ecd 11440',
  label: 'a1156865acc9ed0920290e34c2c394b384d290be 2537',
  lookJobs: 'd23a032dc03b30b8ea0e17e279106f469d94006d 3408',
  lowerPermits: '7c53e1c7721b6e192dc3286468533337a1037675 19375',
  noteMissed: '8d7c2722ac56a37e5b36817e194e7295abaf9011 4470',
  pauseJob: '96218f9372a8f1fbe4c3642131124ff7c0621ac7 2271',
  probe: 'c2e6f3b0806b5325145661234a18cf1ab9dc7e7d 2110',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: 'c653a3fd02eafb66540df08aa1c3ea7ebd9db448 2884',
  readLatch: '8ef9abfe92deb6a9419393bec56f0dd41b0467ac 672',
  registerJob: '8e656ca26bf76ebb7f73a881ccc7cfca6ccc43e3 2493',
  release: 'daf799fa8f1fbb17e719bdacb1704399075114b4 22391',
  renew: '489017506af9fbb0a5fbf3e59ecf350c1d1ebcf9 13649',
  resize: '69d04793d2ec053fcdaad83ba09b384997d201a1 18710',
  retain: '8037e997d2e84afa39754cec347a548e178e3be4 21774',
  rotate: '0416ab078b7ff704d7bf74063f9e127c70002a04 30497',
  setDepth: '3e7945a40b57d2942e92bdb777c376b6432445b9 2174',
  transfer: 'dca8087c888c9834d4d5919cf7e143e237ea59ad 14480',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: 'd76c83c52fe6bd3b4d49a62fc0d9cae1dfcf5485 2055',
  waitForLatch: '108c24cde695b7319e7a82d8f26e6c51d07eff19 1963',
  watch: '80980df186769ae9d2ce86a205b89cdea5ed524c 21563',
};

describe('the text of every script', () => {
  it('is the expected one, to the byte', () => {
    const found = Object.values(scripts).map(({ name, lua }) => {
      const hash = createHash('sha1').update(lua).digest('hex');
      return [name, `${hash} ${Buffer.byteLength(lua)}`] as const;
    });
    expect(found).toHaveLength(Object.keys(EXPECTED).length);
    expect(Object.fromEntries(found)).toEqual(EXPECTED);
  });

  it('is the one that its hash stands for', () => {
    for (const { name, lua, sha } of Object.values(scripts)) {
      expect([name, sha]).toEqual([name, createHash('sha1').update(lua).digest('hex')]);
    }
  });
});
