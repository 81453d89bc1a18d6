import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: 'ec1a5c64ecec6e3a5b12e969c30ee493d730ae52 33195',
  acquireSeveral: '9d48884326a8a82725354f07858b06e9e5937565 32584',
  answerRoll: '48a1e06e317403e6727e1f3a2a16e9425d96fcf3 165',
  callRoll: 'f31c8a67a7bb76558dfd005c0a9208629fae0ed5 1026',
  claimTick: 'd465b1f20a9e6e2fb491599cc808a25b261d2560 21310',
  downgrade: '78fc5c8161589964d405f8f7699fa4cc64c46061 20211',
  endRun: 'a86e6c79ec56dfefdff7af2e31872825296bab80 23079',
  exchangeClaim: '6813a04141f92f32ee41b50247945526a91c7952 2347',
  finishTick: 'bdfdf0dec02b131392184d7659cfc5363cafe648 1793',
  forceRelease: '181381ce4091e82df80afca5a14e3f1a26fc4a12 19257',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: 'f63422704bce8fe8f45fbe051b8efeb03dec021b 722',
  inspect: 'e77a92115422705554906f18b14a5049fce5ec3b 3592',
  keep: 'fa135731aa7f93f14a46798012e52bb6016a4a85 12895',
  label: '1cb592f0e174c2be4359820bd2f4ce424babf07d 3789',
  lookJobs: '4f4f7b4031c392cd754a6cef6e12d7139d0f17a4 3719',
  lowerPermits: '43877bbd038ac247936b1d95f18db1f5ae4c39fa 19716',
  markDone: 'e26ed050a1acc279be3d6286732f00e809a0747a 1849',
  noteMissed: '1ef3f304cb91e6832c23e4a04fb35044e5b89c36 4961',
  pauseJob: 'ff8e570adf913a55c9d9845fde0aab092d79086a 2925',
  probe: '8f5c257123824ab1f500f136aa9218edccc231ab 2132',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '6d5074039e189864d1822ae51adc584b39f025bd 466',
  raiseToken: '6e2330a3f13bd3a43ad82fd176d896fdda9d8e43 4078',
  readRoll: '49d97c4f30a046477af1e950a659fd2dbd734ef9 237',
  registerJob: 'cee1e184b05dc75cbf9cf41b837ee61ac8ef0eba 2712',
  release: '58282e699ca365a653ed4dc2a8fca43d4e55405a 24083',
  renew: '149ebb50553f6d07466c3f1ccf3dc6ac6043d945 14979',
  changeRequest: 'b5c1682240e2db3282fe4c1581d192af1cb3a459 484',
  resize: 'a5521404e8bf37998f25040f42b95ba7f61f76b6 19101',
  retain: 'deed20299019c2b753547bbf6a9f1791953b1d3e 24956',
  rotate: '7115f8067f9100aafb2006e6a83d22b9e931310d 39307',
  setDepth: 'ca21e4d14e6648bf8d18880a275867ee62be6ef1 2951',
  transfer: '3d7d50ada2f4c613cd1f51b2504c19091806ad61 15528',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: '66fd79639614cc7aeee2270cb272444ac8f2fa2d 2169',
  watch: '2d31ae582f1a87b322adcb983f438fb09f9509ea 21673',
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
