import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: '9247f66ee29b2b8c18cef5eb496c8d2944c3396d 35420',
  answerRoll: 'f3db6c8fdf4c77c8339ce149b23f4fd389a29a3a 733',
  callRoll: '096bb14cdd32c4f61216df1d326b1d01dc60f79f 1030',
  claimResult: '075f4dbcf14fac619c0b41353056da64f67bfbd3 33850',
  claimTick: 'af7b640c673cf4e8a465a9db63c1d87971372512 23239',
  downgrade: '4cfe01e8e6b09835e2c6bbdf50246f9dad7319b3 21389',
  endRun: 'bfa77a1d9959278db4baff72093de96207f3b7b7 24304',
  exchangeClaim: '681ce6e83c1ea2a514082ee330a74df7a806c9da 2445',
  finishTick: '212d7de2a00f4c23490c7f8dd8eb68a67fe1ebc4 2398',
  forgetResult: '9c2de38e7b20d44925bb998e9b4b65a71bc3646e 1861',
  forceRelease: '29d6cec1ec8af12fd6433cd69773d7e651ec78cb 20361',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: '18bfa6eeda4824ee593db0cb2a8c2563958d80a2 725',
  inspect: '7bf558ac8ffe80f79d0a5b5d522112a45293c9aa 3581',
  keep: '749558fbd8a644cb53ee281a2e31c3c94ab6af15 12643',
  keepResult: 'f355a79be2649e6e665c9aedff939b6184c28551 22158',
  label: '26aef68b08bccf54239a8e259de7758a981361d7 3768',
  lookJobs: '2ba58afd49a777b447f662230f6807ca404fc4f4 3782',
  lowerPermits: 'e9c414c880b07b311dbb9999f1859652cef0ae1a 20885',
  markDone: 'd7b91e2cb8cf024212faa9b64d1244f29400d3e9 1840',
  noteMissed: '42f545a0590fd94ff1a33ea5440a52a00091782b 5353',
  pauseJob: '7834525e2bb9d72bc323d05f1d10912f84c8970b 2998',
  probe: '03e9617a8a7b0319ff56af027f786bf4127239f3 2155',
  probeInbox: '4b1c83f5d37b582d099b317042adf15eb1edf7f2 75',
  quarantine: '190e9e0dab185e633d11d6ab3ac8fa9f57017cc7 471',
  raiseToken: 'c4bdb9ed254d2b846c5628a0a79f38f20898c788 4109',
  readResult: 'b46d2901e2494c0170ae9f43a1274cd30db2ad18 35',
  readRoll: '49d97c4f30a046477af1e950a659fd2dbd734ef9 237',
  registerJob: '3e7d1215899e99a049a9e578d8c4b31242463958 3941',
  release: '83dbc85d26d6236bcfa605e9e1aa3791e38a43e5 25430',
  renew: '2ae2171921cb1cd51a50798eb9c174e99decb562 11725',
  renewExactly: '1dfc30e364a9d0587f696f2827654944bf0752fc 14223',
  changeRequest: 'b5c1682240e2db3282fe4c1581d192af1cb3a459 484',
  resize: '41329f5f4c0c3e69ba7194f8e1c2e6df9203b0ae 20263',
  retain: '4a6f1d3b26b51f7a7bee82885f1f635839abdb6c 26057',
  rotate: '8f7050847c0added2598718110aa0cc47c8aa24b 41506',
  setDepth: '2095e92cd9cb5a299785f291e2faf65ff7f60247 2905',
  tryWrite: '4e7003ce2f17d67ca8b61fdf19bbf5aab3fdb89e 470',
  verify: 'bb3a170ececc96c91d054e366eba286aef5e567a 2177',
  watch: 'abc04fe63ea86a67eab96a2ff2acf526cc74ade2 22784',
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
