// How the two series of the scenario are called.
export const USING = '`using()`';
export const DECORATED = '`@DistributedLock`';
