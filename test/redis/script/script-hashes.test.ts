import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: 'ef20b6b76c8a18221182301a37c57ff227c07038 30837',
  acquireSeveral: '672dc3f62a45ef1d03653e55f9a383d462285f23 30244',
  claimTick: 'c1ff020ad05bea69abd1a34f38b28658bc51f70d 20225',
  countDown: '3ea8c8d3ab26568852adfa1bbcc4b9baddf31f57 2758',
  downgrade: '22a96751c77b4b26b51a07828069e04f00dfcb1b 19981',
  endRun: 'ce445cbcb809dbbdbcc5b15bf5a4f4839b94030c 22761',
  exchangeClaim: '7d853d8104b037f170366d7ff112f5d017abc27e 2223',
  finishTick: '90bd15ad7927428e75cac0751c48e559b99006a2 1668',
  forceRelease: '8d639ca15e4db79eb33db25f19b9455316be020a 19079',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: '730411c5ab54dfc6c787aab0b2dc53ebadbd4017 651',
  inspect: 'b8af91ce07b8eac67d3d64687710c4c6522b5095 5112',
  keep: 'e7d13af3746e3e1c55baca2183aa521253343231 12812',
  label: 'fd66ec2116a3e8ea61bfe5cb6c896ee8635097bf 2611',
  lookJobs: 'e05d6e0a4cc085b8a190854ca7ada5bf485aa41b 3621',
  lowerPermits: '2a82eb799756d7a1b787651087a8f031a723c2d9 19562',
  noteMissed: 'b0a204c25ec47cba193d77a45193c9586e6c83f2 4655',
  pauseJob: 'ce87285280163e0bb96151054baed09a8f7685c4 2776',
  probe: 'c2e6f3b0806b5325145661234a18cf1ab9dc7e7d 2110',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: '810bdbc4bcf8e40f229e25351c02e754dda59547 2958',
  readLatch: '8ef9abfe92deb6a9419393bec56f0dd41b0467ac 672',
  registerJob: '43ff6f557612c0675bb2d7e67f50e16d07a92587 2561',
  release: 'cab0cbe6e041bb3528914f560c377804300d816f 23934',
  renew: '51ff7d09df1fd500817c06d409e2aedc18b24354 14320',
  resize: 'e1932af416541536ba4b3b3c13a6c7e6b75d80fc 18897',
  retain: '4bf552ea1ad0a4b9f180b27f46110c286a6dc5fd 23831',
  rotate: '8ef468557a05386734b2c1da101672d7edc05138 32037',
  setDepth: '1b27fbe45ea46a4f0ecb6d04ec167c7d99d15c31 2248',
  transfer: '3a38bf3ad809d6f4ac904b7c89d09acd19973557 15151',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: '110130b4bb7a39f5c791b020fcda18a1bfd9d94b 2129',
  waitForLatch: '108c24cde695b7319e7a82d8f26e6c51d07eff19 1963',
  watch: 'e8db908c9d2bdd02b47384811949822bcb4c74a1 21750',
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
