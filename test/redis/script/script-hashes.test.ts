import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '2e0aa34c6750a65a7e463044d46d4b2ba3d4ce34 34145',
  acquireSeveral: '881f9ad5adf37366bd00398dd2319aa91d33a932 33455',
  answerRoll: '48a1e06e317403e6727e1f3a2a16e9425d96fcf3 165',
  callRoll: 'f31c8a67a7bb76558dfd005c0a9208629fae0ed5 1026',
  claimTick: '8c4e8bc54b590190eed1932f6bd1aff89eb31a9b 21337',
  downgrade: '55eb7cdc376713bc186cd8996eae33a61e8c2ac0 20266',
  endRun: 'dea4d22645de198938b4f047d34443bf6250a44f 23134',
  exchangeClaim: '6813a04141f92f32ee41b50247945526a91c7952 2347',
  finishTick: 'bdfdf0dec02b131392184d7659cfc5363cafe648 1793',
  forceRelease: '18c826ea8181f19361c539f90bba5193285de50c 19312',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: 'f63422704bce8fe8f45fbe051b8efeb03dec021b 722',
  inspect: 'e77a92115422705554906f18b14a5049fce5ec3b 3592',
  keep: 'fa135731aa7f93f14a46798012e52bb6016a4a85 12895',
  label: '1cb592f0e174c2be4359820bd2f4ce424babf07d 3789',
  lookJobs: '4f4f7b4031c392cd754a6cef6e12d7139d0f17a4 3719',
  lowerPermits: 'd1f978f1ba66ba1ac067a504b511bd4ca21d63df 19771',
  markDone: 'e26ed050a1acc279be3d6286732f00e809a0747a 1849',
  noteMissed: '6d9201b64637179623ba92cf6bd00edad0628fdd 5194',
  pauseJob: '248215ada19c4ebfd1ffe0c5bb0cbce0691ea703 2952',
  probe: '8f5c257123824ab1f500f136aa9218edccc231ab 2132',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '190e9e0dab185e633d11d6ab3ac8fa9f57017cc7 471',
  raiseToken: '6e2330a3f13bd3a43ad82fd176d896fdda9d8e43 4078',
  readRoll: '49d97c4f30a046477af1e950a659fd2dbd734ef9 237',
  registerJob: '2f302f4eba72fd88e058b3389599039162f41ce3 3246',
  release: '9012c08b4f4eb6aaae726f95a01494d740d4bc47 24154',
  renew: '149ebb50553f6d07466c3f1ccf3dc6ac6043d945 14979',
  changeRequest: 'b5c1682240e2db3282fe4c1581d192af1cb3a459 484',
  resize: 'ea513febfed5ba72f2fedc5923178760ca209872 19156',
  retain: 'f58dd6b42af8e74a1832be03be2c3ac5551a9038 25032',
  rotate: '12625676116c4bf4b1b762bebe50ae79ce0466ec 40241',
  setDepth: 'ca21e4d14e6648bf8d18880a275867ee62be6ef1 2951',
  transfer: '3d7d50ada2f4c613cd1f51b2504c19091806ad61 15528',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: '66fd79639614cc7aeee2270cb272444ac8f2fa2d 2169',
  watch: '5c6bb54c475922720d1969e5cc53d19acde3dbac 21712',
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
