import { LOCKS_AS_USER } from '../../support/redis/lock-user.js';

/** For what is about another user, database or prefix than the documented one has. */
export const itAsAnybody = LOCKS_AS_USER ? it.skip : it;
