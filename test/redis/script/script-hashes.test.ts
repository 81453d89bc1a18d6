import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '9480c5cf39e0e248c782ae13c43a8ff1f3a1bd94 34985',
  answerRoll: 'f3db6c8fdf4c77c8339ce149b23f4fd389a29a3a 733',
  callRoll: '096bb14cdd32c4f61216df1d326b1d01dc60f79f 1030',
  claimResult: '35733c3400503977347b84eca5ae8e10de633ccc 33628',
  claimTick: '30a9b128eddb85772675a5985280121cb24d784c 23025',
  downgrade: '14fa79077d34f82e1fce3eea1263282ee25a3801 21167',
  endRun: '5efe2f3136f6b65d19af772734dda39a1bd1a986 24082',
  exchangeClaim: '681ce6e83c1ea2a514082ee330a74df7a806c9da 2445',
  finishTick: '212d7de2a00f4c23490c7f8dd8eb68a67fe1ebc4 2398',
  forgetResult: '9c2de38e7b20d44925bb998e9b4b65a71bc3646e 1861',
  forceRelease: '1a277344c3f460087c8a9d531715f6fbde5f313a 19928',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: '18bfa6eeda4824ee593db0cb2a8c2563958d80a2 725',
  inspect: '7bf558ac8ffe80f79d0a5b5d522112a45293c9aa 3581',
  keep: 'c50c3cc4dd13b73a92353e13d87ff7b6f64b931f 12635',
  keepResult: '88f9dab162a72add7a633cbb102b9bfdd60e8e74 21936',
  label: '26aef68b08bccf54239a8e259de7758a981361d7 3768',
  lookJobs: '2ba58afd49a777b447f662230f6807ca404fc4f4 3782',
  lowerPermits: 'ef556859a65bc6ee84d3ea4326feb536eb4a7034 20663',
  markDone: 'd7b91e2cb8cf024212faa9b64d1244f29400d3e9 1840',
  noteMissed: '42f545a0590fd94ff1a33ea5440a52a00091782b 5353',
  pauseJob: '7834525e2bb9d72bc323d05f1d10912f84c8970b 2998',
  probe: '06fdd7da729cacdb76c99a917d6e5e563b53b6ec 2150',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '190e9e0dab185e633d11d6ab3ac8fa9f57017cc7 471',
  raiseToken: 'd9f75c97ee5473ff6d6b34ce08826696006ef37a 4057',
  readResult: 'b46d2901e2494c0170ae9f43a1274cd30db2ad18 35',
  readRoll: '49d97c4f30a046477af1e950a659fd2dbd734ef9 237',
  registerJob: '3e7d1215899e99a049a9e578d8c4b31242463958 3941',
  release: '70794c99020300b4d05a6408d36d52f8c17b2dce 24967',
  renew: '2ae2171921cb1cd51a50798eb9c174e99decb562 11725',
  renewExactly: '8de46890861c6374658671e42251db15a512d9fb 14215',
  changeRequest: 'b5c1682240e2db3282fe4c1581d192af1cb3a459 484',
  resize: 'd4a7ca3b45e99bfd8ea77d2d9771fe3edc651c8f 20041',
  retain: '35e4a14558843da08c3a75065a58336d515d91a0 25846',
  rotate: '92aa969f9e1948590adc03085933eccf02abda14 41043',
  setDepth: '2095e92cd9cb5a299785f291e2faf65ff7f60247 2905',
  tryWrite: '06b92af6db14f43e530f5ceb32021e1c8bf7ab51 463',
  verify: 'bb3a170ececc96c91d054e366eba286aef5e567a 2177',
  watch: '80a59674c546897a351319888d03c93c0ee65705 22562',
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
