import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '885ac912d4456e3f2a1b810571cc7e8cb1f92d6a 21915',
  claimTick: 'cf0a7e446a14d5dbc8713c827ae386675968d08b 11228',
  countDown: '0ad9fe491e6a591fbcbfa1fd5c569155e1c499c7 2670',
  downgrade: '81f07b9e38a9cd20419cc23371744b4dd22005a2 15236',
  exchangeClaim: 'e40a0abc0d9ba91ca3626652bd43d76c24b0f6c4 2087',
  finishTick: 'c26f8bc5349920242553c8b1b763a8cffc034dd6 442',
  forceRelease: '07b01c870382df4ce0785109ed05da15a3adcbf2 14456',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  inspect: '6f2173dc9b9cbe8ed089769fe473b9e50b5d0a41 3944',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: 'a5e71fde6cffd74c0f73b02c9d7abdb5941b1cd6 2205',
  readLatch: '8ef9abfe92deb6a9419393bec56f0dd41b0467ac 672',
  release: '3790e3c11f88e1af21f961afbff8cb144804233c 15205',
  renew: '929f67676a9b104d95633bd8eeb53a4867f62d82 9151',
  resize: '85d928256fa031571144c50c45db389c4e8abebd 14255',
  rotate: '325c080debea25b9aa44f04f4efe117e03495e80 21729',
  setDepth: 'c405257f09c90189d06f693db8a34261e4e3595d 1716',
  transfer: 'f1d40d1a2161a6f1a67606d25b0e84da3a94a177 9726',
  verify: 'caa4ab4835437cf57ec419e5893252c5d10e8077 1514',
  waitForLatch: '56e53f608aed304df8aeff81cfc261d1ec5ce676 1961',
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
