import { createHash } from 'node:crypto';
import * as scripts from '../../../lib/redis/script/scripts.js';

/** Every script that the library sends, by its name. Change a line here only together with a change of the script itself. */
const EXPECTED = {
  acquire: 'c9f4c57b8e167ad7ea7ae4cfedaa594e83d9b8b4 35254',
  answerRoll: 'f3db6c8fdf4c77c8339ce149b23f4fd389a29a3a 733',
  callRoll: '096bb14cdd32c4f61216df1d326b1d01dc60f79f 1030',
  claimResult: '144c4c4e5ed7294f151ab7a027765184f2451dfe 33763',
  claimTick: '96b56e20771a6aab5b6f4c1cf4c944a2a4a7b7d7 23160',
  downgrade: 'd3bd9fa349c55998df654eb79e94e95cc2a0070d 21302',
  endRun: '5f753ec37bfb426fc02c935afb7b4100a047c4d4 24217',
  exchangeClaim: '681ce6e83c1ea2a514082ee330a74df7a806c9da 2445',
  finishTick: '212d7de2a00f4c23490c7f8dd8eb68a67fe1ebc4 2398',
  forgetResult: '9c2de38e7b20d44925bb998e9b4b65a71bc3646e 1861',
  forceRelease: '2ee7c0cfe8868d12be0f4ba9e88a2a4186ff1386 20274',
  guard: 'ea1eba6166219486e6aee52661aca231190863fb 926',
  indexJobs: '18bfa6eeda4824ee593db0cb2a8c2563958d80a2 725',
  inspect: '7bf558ac8ffe80f79d0a5b5d522112a45293c9aa 3581',
  keep: 'c50c3cc4dd13b73a92353e13d87ff7b6f64b931f 12635',
  keepResult: '179c28d036bb5843db01f7914e645267dc92b5c8 22071',
  label: '26aef68b08bccf54239a8e259de7758a981361d7 3768',
  lookJobs: '2ba58afd49a777b447f662230f6807ca404fc4f4 3782',
  lowerPermits: '2f179dd3e50041322769c929cf9121b4c990df68 20798',
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
  release: 'ec2651d36845a37d0828c7153ba79433dfdcde20 25254',
  renew: '2ae2171921cb1cd51a50798eb9c174e99decb562 11725',
  renewExactly: '8de46890861c6374658671e42251db15a512d9fb 14215',
  changeRequest: 'b5c1682240e2db3282fe4c1581d192af1cb3a459 484',
  resize: '62e728b9b857e0f815354a2a31ca0eae316f2926 20176',
  retain: 'e352e3fe924d0cd1bd6b01171a0f1b1092a21a78 25970',
  rotate: 'd29fc5ba2ef4455a4b0aa52b63bf16ca5dec1a27 41330',
  setDepth: '2095e92cd9cb5a299785f291e2faf65ff7f60247 2905',
  tryWrite: 'd6b7610eb0664fa1f1210853352562976ac0fa9b 468',
  verify: 'bb3a170ececc96c91d054e366eba286aef5e567a 2177',
  watch: '0bec744dbada2b2d5b259a8c25bbb05299ecb8e5 22697',
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
