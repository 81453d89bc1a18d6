import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '2f22a4b83c60eee025b2f0d42c100ecd8ed77567 35297',
  answerRoll: '65dd02f5de9fed8dd3aa5be0c49fe5e0f93ecaca 720',
  callRoll: 'f31c8a67a7bb76558dfd005c0a9208629fae0ed5 1026',
  claimResult: '6921654a8af85f538ced0aa4d82686e86fe97404 34019',
  claimTick: 'be91a2af0c93aae74345101da1f9b9161adb89ff 23156',
  downgrade: 'a81d94ca6f1dde1c53e890b05ec730ea2c41ca21 21418',
  endRun: '300487dd55fbd83309cadb0d87e12445d3496156 24286',
  exchangeClaim: 'f0141b5e2cdf18205136e80557b0c3066f6c7f1e 2456',
  finishTick: 'a9cf7d1ce16236a578f974d0247f928f85f3a2f0 2244',
  forgetResult: 'db18e2f3d24804e1ff3bc0139e98bb65a2cd0ea2 1875',
  forceRelease: '68cd15a6e4db3c5b050e4931b7491a1b4507655d 20192',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: 'f63422704bce8fe8f45fbe051b8efeb03dec021b 722',
  inspect: 'e77a92115422705554906f18b14a5049fce5ec3b 3592',
  keep: '23acaba399787a9d80c13b586525637c89eb2089 12820',
  keepResult: 'feac649bbdf706cdb4f64c3b7444f3de56b1d186 22249',
  label: '1cb592f0e174c2be4359820bd2f4ce424babf07d 3789',
  lookJobs: '823d77a14c4c94c7401a20c2c72afb1f6b808643 3796',
  lowerPermits: '02001e44fff7e505e6a5a1fd76b297fc2b38c607 20923',
  markDone: 'e26ed050a1acc279be3d6286732f00e809a0747a 1849',
  noteMissed: '2f7d4d46077c8baf4ab36c064fe600cb7910def5 5253',
  pauseJob: 'a1301df664512e74d9a68b2b2841d85ef35e345d 3011',
  probe: 'e7ae2906c0835e409397160c71c56ac1a59604b7 2154',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '190e9e0dab185e633d11d6ab3ac8fa9f57017cc7 471',
  raiseToken: '6e2330a3f13bd3a43ad82fd176d896fdda9d8e43 4078',
  readResult: 'b46d2901e2494c0170ae9f43a1274cd30db2ad18 35',
  readRoll: '49d97c4f30a046477af1e950a659fd2dbd734ef9 237',
  registerJob: '885c180b29c2e42694d52f72143ece04488b6769 3959',
  release: '292f29a0cc7acb804759a845526f70e69bb96f81 25306',
  renew: 'f9e23b386ac6eb8a6f82072d3eef4db72fff9c61 11865',
  renewExactly: 'd22504b2961bffda26d4d549a8a05a8f31826ba6 14387',
  changeRequest: 'b5c1682240e2db3282fe4c1581d192af1cb3a459 484',
  resize: 'f3bee7283c0e0f774c8f8f2f4eb0305fe36bac62 20308',
  retain: '06946f5f5137c71fde76b0a2c7c5493d6404ace8 26184',
  rotate: '254e3f07b66b490c9eedd005bdfbdcad4adcbd50 41393',
  setDepth: 'ca21e4d14e6648bf8d18880a275867ee62be6ef1 2951',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: '66fd79639614cc7aeee2270cb272444ac8f2fa2d 2169',
  watch: '722194915302164a9d426631168122ae07adcbaa 22864',
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
