import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '37e4982e8a6de003337952e774437861b8e4c207 24628',
  claimTick: 'cf0a7e446a14d5dbc8713c827ae386675968d08b 11228',
  countDown: '0ad9fe491e6a591fbcbfa1fd5c569155e1c499c7 2670',
  downgrade: '88d73b148eb744e059f176194aeceed808d4caeb 16335',
  exchangeClaim: 'e40a0abc0d9ba91ca3626652bd43d76c24b0f6c4 2087',
  finishTick: 'c26f8bc5349920242553c8b1b763a8cffc034dd6 442',
  forceRelease: '412c28dffd3df56e89a9b987ee278ffd51e527bc 15555',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  inspect: '1bad819182b33cb7a1d40f66f3b744a7c4e57d0c 3974',
  lowerPermits: 'c5a69ade81b6b124bd4e58c7e87a6ffb7277761d 15920',
  probe: 'a4c955dff140d976fc58ac2cd8e8e288aaaac413 1993',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: 'a5e71fde6cffd74c0f73b02c9d7abdb5941b1cd6 2205',
  readLatch: '8ef9abfe92deb6a9419393bec56f0dd41b0467ac 672',
  release: '8c2f0ed0f7f18947c0c32edb03492381435cd421 16304',
  retain: '6410260964221b51beed21b31ce1bcf1c9e7d7f7 17943',
  renew: '929f67676a9b104d95633bd8eeb53a4867f62d82 9151',
  resize: '5d67e926e94b1cb4f1768e416bd3658b1ca0290f 15354',
  rotate: '02ea0b9de3ed17d0eca7e43160c370ea0011dc9f 24498',
  setDepth: 'c405257f09c90189d06f693db8a34261e4e3595d 1716',
  transfer: 'f1d40d1a2161a6f1a67606d25b0e84da3a94a177 9726',
  tryWrite: 'ebb121ee8695d72d0d58b19dddb862d33fb3fb1d 151',
  verify: 'caa4ab4835437cf57ec419e5893252c5d10e8077 1514',
  waitForLatch: '56e53f608aed304df8aeff81cfc261d1ec5ce676 1961',
  watch: '7517161ab253aaefb6e1bef9ae5b3da61ddaaa9a 18015',
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
