import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '9d14e366dc6e27decc1ddd9143b3cdf7bf51d071 28852',
  claimTick: 'fca99bc8e4e57614dfe4dc8bb234198e61884092 17351',
  countDown: 'cc2ca66f40635c3e9bbc5fba2464d6b02a72fede 2756',
  downgrade: '04695099dedad06cfe2c7f7fa083d77ec608df17 18751',
  endRun: '5a2365230ad439bdadea1ecc79d782461c873291 20032',
  exchangeClaim: 'e40a0abc0d9ba91ca3626652bd43d76c24b0f6c4 2087',
  finishTick: 'cdf1926d55a50a2dc6366bc31b532d6386fb9315 1583',
  forceRelease: '8a7ebd6674a574016fdfd32acc158d558d3fe0e4 17849',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: '730411c5ab54dfc6c787aab0b2dc53ebadbd4017 651',
  inspect: '04089790e9bd7f2b791f473206ae0f1061ac7426 5038',
  label: 'a1156865acc9ed0920290e34c2c394b384d290be 2537',
  lookJobs: 'e818f96a4893fdcc17894efa0deed54c10c015ac 2556',
  lowerPermits: '8b9dfa737f4827fc78f5e7863335ecba09c4bd9d 18332',
  noteMissed: 'c31756a81ec2de974f8e853e6fac5c1b3bf9a40a 4206',
  pauseJob: 'f8735c9d8ece0b9ee7d5b919603dd6c82d2e8270 2243',
  probe: 'c2e6f3b0806b5325145661234a18cf1ab9dc7e7d 2110',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: '263fde43eb5ff7e8db92f395a68e4b8d23e1dc64 2882',
  readLatch: '8ef9abfe92deb6a9419393bec56f0dd41b0467ac 672',
  registerJob: 'd88a9b0bec8aba350b17b322880f559acfa16548 2367',
  release: '5f2527ec2af4a635936a8857b1a4ae02209f5490 18874',
  renew: '70e8a293432f8f1ad93ee219bd2bc8a7e48fea15 9893',
  resize: '4bd70fc8c6f5e0cc7c263da4f10fb6a752923109 17667',
  retain: 'e2aae30937e7e00011c18ad05aa771d07c771372 20758',
  rotate: 'f6c09bf0105569a476a4bb2998bac01998da9316 28694',
  setDepth: '3e7945a40b57d2942e92bdb777c376b6432445b9 2174',
  transfer: '1602380f42bb15f8725d527f0e49b9950a7f53fb 10855',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: 'd76c83c52fe6bd3b4d49a62fc0d9cae1dfcf5485 2055',
  waitForLatch: '56e53f608aed304df8aeff81cfc261d1ec5ce676 1961',
  watch: '54aba59d0b2f7ea55467acd3b306ebabd39a140c 20467',
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
