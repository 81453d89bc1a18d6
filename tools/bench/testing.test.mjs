import assert from 'node:assert/strict';
import { Begun, describe, it } from './testing.mjs';

describe('what hooks have begun', () => {
  it('is ended, the last one first, whatever of it fails', async () => {
    const ended = [];
    const begun = new Begun();
    const fail = () => Promise.reject(new Error('no'));
    for (const each of ['redis', 'network']) begun.endBy(() => ended.push(each));
    begun.endBy(fail);
    begun.endBy(() => ended.push('client'));
    await assert.rejects(begun.end(), /^Error: no$/);
    assert.deepEqual(ended, ['client', 'network', 'redis']);
    for (let index = 0; index < 2; index++) begun.endBy(fail);
    await assert.rejects(begun.end(), ({ errors }) => errors.length === 2);
    await begun.end();
  });
});
