import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: 'a15ebd928c9088526dce269b461559543edc0274 26099',
  claimTick: '91b93260ea712a00913ac6a0ad95fa3139969a17 11781',
  countDown: '0ad9fe491e6a591fbcbfa1fd5c569155e1c499c7 2670',
  downgrade: 'dff4553a4229853a6aabc48976ad7f7491860502 17127',
  exchangeClaim: 'e40a0abc0d9ba91ca3626652bd43d76c24b0f6c4 2087',
  finishTick: 'c26f8bc5349920242553c8b1b763a8cffc034dd6 442',
  forceRelease: 'b1048d97e14bd65c5aaf3758ff9d7670c080115b 16249',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  inspect: '73c1b619ffdd38bc782478f938fec8f13b750bd4 4599',
  label: '182c4fd401e634b8996c38c1daa1b5f653f142e3 2220',
  lowerPermits: 'f361438fd3023ebc696cf34486c8cda209017ebc 16721',
  probe: 'a4c955dff140d976fc58ac2cd8e8e288aaaac413 1993',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: 'c99d3bc043924f3ae91df39b7a277030647ae90b 2491',
  readLatch: '8ef9abfe92deb6a9419393bec56f0dd41b0467ac 672',
  release: 'ba140f4d2a920e51280abc8e8cc311040fa3854d 16999',
  retain: 'e740f81425e844c76351eafe40adc8305ca8e50e 18904',
  renew: '34436e8df9e6e63ff2b6f8a7c800f128fc08f1d4 9455',
  resize: '81fc00dc7e83fae7678f761b6899b72aec329999 16072',
  rotate: 'ae1f4a5cedefcf5af1358fddfd735a6de1644f89 25708',
  setDepth: '8b977b7520d5b1f07e608753367cf5dc34def082 1873',
  transfer: '0e3f8684b100d0a3a080ecd376af4edca7affdbe 10376',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: 'f6fc7390cc33529d068d0d02e4e09f5a05a28d37 1738',
  waitForLatch: '56e53f608aed304df8aeff81cfc261d1ec5ce676 1961',
  watch: '8b08381d997544c56a7d627b8589cacc1ef84f76 18872',
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
