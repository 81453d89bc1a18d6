import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '9536f07cc3d1c06b1dc36e96f78f62236d3f0a90 35467',
  answerRoll: '0e8b51be7c37b6a85faf7a2b1f24c52c13d86905 728',
  callRoll: '0691944f26d5c79b66d781589f53cfb2218d1dfc 1034',
  claimResult: 'e6647c5820711b7c9c1b3fd34d1eff0d8fc4ebb4 34073',
  claimTick: 'b0c110941d16498f9a983608261db6629eb5f618 23330',
  downgrade: '22ad49a44c498a265b7c5877202fef35a48cef78 21426',
  endRun: 'a5f7368a9c3c9649d990947d198d40dd120daab0 24424',
  exchangeClaim: '5c7bad6db17bd0ce9d62f1e2972a8cde2455704f 2464',
  finishTick: '7bd96a3f21d5932118ac9a3af01b8b8f100cfffc 2401',
  forgetResult: 'f8b665c929dfad5eab67831315af3a441677bf0b 1883',
  forceRelease: 'c2ab10f9f408ceb5f8d5c8228e0324cd446b9f0b 20200',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: '74029e0132f056ed99c349f4aa278de6dd897e4f 730',
  inspect: '94e2fa01c8d7533a9c3fbd805a7cf781fc609677 3600',
  keep: '5a0ca0f1c48a0a27f3058f49b7d3ec05aa8a2ad0 12828',
  keepResult: 'e5c98eac3500cf0bd232e3fda6bbfe7559bc0b74 22257',
  label: '3659476c8f71d2dbc4662eb8c324b47af373edf6 3797',
  lookJobs: 'a63ba9a14d2969cde3980d33bca39e486088c5ac 3804',
  lowerPermits: '5c144031c60b99b58d9207d33186c26a1fbcd965 20931',
  markDone: 'e7ed8fe8e5c9f9dade2bd2cd4ebebaad11fab6b8 1857',
  noteMissed: '4cf90612c1ecec3f6a22599ed0a204c2df99ee59 5391',
  pauseJob: 'ba0fb0104e0ceab2095712879796f92c15a5fcbc 3019',
  probe: 'e7ae2906c0835e409397160c71c56ac1a59604b7 2154',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '190e9e0dab185e633d11d6ab3ac8fa9f57017cc7 471',
  raiseToken: '82834ea6424429a82c8474a457e7ac6d57839693 4086',
  readResult: 'b46d2901e2494c0170ae9f43a1274cd30db2ad18 35',
  readRoll: '49d97c4f30a046477af1e950a659fd2dbd734ef9 237',
  registerJob: '5af2689f96784a7a434ab03d563300e1043024cf 3967',
  release: '457bad060463932f1db927c052e296fae06e795d 25314',
  renew: '401664b83b493b61b3f907fb128390db78f6f7c4 11873',
  renewExactly: 'ac322abbb273dffe09ddd744c49b9145cca6b25b 14395',
  changeRequest: 'b5c1682240e2db3282fe4c1581d192af1cb3a459 484',
  resize: 'b6a99348441ed3972e0fc9cbc014ac4cb661b573 20316',
  retain: 'b0ed1178ce458885638b7617c120580d7ab39ebd 26192',
  rotate: '5def28fe8d7c43cba401590eef1d7a781115a7cb 41544',
  setDepth: 'ca21e4d14e6648bf8d18880a275867ee62be6ef1 2951',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: 'af02e49b555a91100c3b5683f276101326c1b9b8 2177',
  watch: 'e54fc2d19dfedfcd706be059f43b7f45f12fb32a 22872',
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
