import { defineScript } from './script.js';

// Each script is a file in lua/, whose header tells its KEYS, ARGV and replies.

export const ACQUIRE = defineScript('acquire');
export const CLAIM_TICK = defineScript('claimTick');
export const COUNT_DOWN = defineScript('countDown');
export const DOWNGRADE = defineScript('downgrade');
export const EXCHANGE_CLAIM = defineScript('exchangeClaim');
export const FINISH_TICK = defineScript('finishTick');
export const FORCE_RELEASE = defineScript('forceRelease');
export const GUARD = defineScript('guard');
export const INSPECT = defineScript('inspect');
export const QUARANTINE = defineScript('quarantine');
export const RAISE_TOKEN = defineScript('raiseToken');
export const READ_LATCH = defineScript('readLatch');
export const RELEASE = defineScript('release');
export const RENEW = defineScript('renew');
export const RESIZE = defineScript('resize');
export const ROTATE = defineScript('rotate');
export const SET_DEPTH = defineScript('setDepth');
export const TRANSFER = defineScript('transfer');
export const VERIFY = defineScript('verify');
export const WAIT_FOR_LATCH = defineScript('waitForLatch');
