import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '4d60c08b84af242ec31da345d6b944d90c126112 25700',
  claimTick: '765aefac52aa8b1daa35c2c6a861ba2329b8f56e 11581',
  countDown: '0ad9fe491e6a591fbcbfa1fd5c569155e1c499c7 2670',
  downgrade: '26d8515d51bd573340f3ec41ca2bf2afbe1fdce2 16927',
  exchangeClaim: 'e40a0abc0d9ba91ca3626652bd43d76c24b0f6c4 2087',
  finishTick: 'c26f8bc5349920242553c8b1b763a8cffc034dd6 442',
  forceRelease: '8e103c3048bde3dadb1d5c139d4ce55860e084f3 16049',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  inspect: '73c1b619ffdd38bc782478f938fec8f13b750bd4 4599',
  label: '182c4fd401e634b8996c38c1daa1b5f653f142e3 2220',
  lowerPermits: '70e187f05ec35fa84a807ae02abc40b1012f1be9 16521',
  probe: 'a4c955dff140d976fc58ac2cd8e8e288aaaac413 1993',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: 'c99d3bc043924f3ae91df39b7a277030647ae90b 2491',
  readLatch: '8ef9abfe92deb6a9419393bec56f0dd41b0467ac 672',
  release: '9deb428baac09ab9cf68346e744f9f20a1f31688 16799',
  retain: 'f03738cfa21f4b504a4b9cd9eff47f6f7faa0a45 18704',
  renew: '34436e8df9e6e63ff2b6f8a7c800f128fc08f1d4 9455',
  resize: 'e57cea238b63ae49737f2daee28852d211838d41 15872',
  rotate: 'aa7828f7bf298ef1750cb638385acbe0616a4067 25508',
  setDepth: '8b977b7520d5b1f07e608753367cf5dc34def082 1873',
  transfer: '0e3f8684b100d0a3a080ecd376af4edca7affdbe 10376',
  tryWrite: 'ebb121ee8695d72d0d58b19dddb862d33fb3fb1d 151',
  verify: 'f6fc7390cc33529d068d0d02e4e09f5a05a28d37 1738',
  waitForLatch: '56e53f608aed304df8aeff81cfc261d1ec5ce676 1961',
  watch: '5c405ff4e2d5fad4f122c0b64cb49378f3dd610a 18672',
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
