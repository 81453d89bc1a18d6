// The configurations to check. `set` are the numbers of the model, on top of `anything`: two instances, one contender
// each, and every fault any number of times.

/** For a fault: any number of times. */
const ANY = 255;
/** The extra properties to check: `CHECK` is a sum of these. See lock.pml. */
const CHECKS = { KNOWN: 1, NOTHING: 4, IN_TURN: 8, PROGRESS: 16 };
const { KNOWN, NOTHING, IN_TURN, PROGRESS } = CHECKS;
/**
 * Numbers that change the size of a state, or its steps: each combination is a program. The others are its arguments.
 */
export const SHAPE = new Set(['INSTANCES', 'WIRES0', 'IDS0', 'REPLAYS']);

const anything = {
  LEASE: 2, // ticks
  INSTANCES: 2,
  WIRES0: 1, // commands in flight of instance 0: with 2, commands are late, doubled, out of order
  IDS0: 1, // contender ids of instance 0
  CALLERS0: 1, // local callers of instance 0, and of each of the others
  CALLERS1: 1,
  MIN: 0, // minHoldMs of all leases
  KEEPS: 0, // 1: a waiter keeps its place; with PROMPT it sends nothing else until it has to ask
  COHORT: 0, // hand-overs in memory in a row
  TICKS: 3, // token ticks, after which a run is cut
  DEAF: 1, // PUBLISH may reach nobody though the instance lives
  PROMPT: 0, // 1: delays are shorter than a tick, heartbeats on time
  MAX_IDLE: 0, // PROMPT: ticks that a waiter may see no valid holder
  CRASHES: ANY,
  LOST_COMMANDS: ANY,
  LOST_REPLIES: ANY,
  LOST_MESSAGES: ANY,
  DOUBLED: ANY,
  GIVE_UPS: ANY,
  REPLAYS: 0, // messages that a stranger on the channels writes again, or alters
};
const noLoss = { CRASHES: 0, LOST_COMMANDS: 0, LOST_REPLIES: 0, LOST_MESSAGES: 0 };
const busy = { IDS0: 2, CALLERS0: 3, CALLERS1: 2, COHORT: 1 };
const prompt = { ...busy, PROMPT: 1, INSTANCES: 3, TICKS: 99, DEAF: 0, LOST_COMMANDS: 0, LOST_REPLIES: 0 };

/** The faithful models: each of these is searched exhaustively. */
export const configurations = [
  { name: 'late', set: { WIRES0: 2, IDS0: 2, CALLERS0: 2, ...noLoss, CHECK: KNOWN + NOTHING } },
  { name: 'faults', set: { WIRES0: 2, CHECK: KNOWN } },
  { name: 'tidy', set: { ...busy, CRASHES: 0, CHECK: KNOWN + NOTHING } },
  { name: 'cohort', set: { ...busy, CHECK: KNOWN } },
  { name: 'messages', set: { ...prompt, CRASHES: 0, MAX_IDLE: 1, CHECK: KNOWN + PROGRESS + IN_TURN + NOTHING } },
  {
    name: 'crash',
    set: { ...prompt, COHORT: 0, CALLERS0: 2, CALLERS1: 1, CRASHES: 2, MAX_IDLE: 3, CHECK: KNOWN + PROGRESS + IN_TURN },
  },
  {
    name: 'command',
    set: { ...prompt, ...noLoss, CALLERS0: 2, CALLERS1: 1, LOST_COMMANDS: 1, MAX_IDLE: 1, CHECK: KNOWN + PROGRESS },
  },
  {
    name: 'stranger',
    set: {
      IDS0: 2,
      CALLERS0: 2,
      ...noLoss,
      LOST_MESSAGES: 1,
      DEAF: 0,
      GIVE_UPS: 1,
      REPLAYS: 1,
      CHECK: KNOWN + NOTHING,
    },
  },
  { name: 'minimum', set: { WIRES0: 2, IDS0: 2, CALLERS0: 2, MIN: 3, ...noLoss, GIVE_UPS: 1, CHECK: KNOWN + NOTHING } },
  {
    name: 'kept',
    set: { ...prompt, CALLERS0: 2, CALLERS1: 1, MIN: 4, CRASHES: 1, MAX_IDLE: 5, CHECK: KNOWN + PROGRESS + IN_TURN },
  },
  {
    name: 'keep',
    set: { WIRES0: 2, IDS0: 2, CALLERS0: 2, KEEPS: 1, ...noLoss, GIVE_UPS: 1, CHECK: KNOWN + NOTHING },
  },
  {
    name: 'quiet',
    set: {
      ...prompt,
      KEEPS: 1,
      LEASE: 3,
      COHORT: 0,
      CALLERS0: 2,
      CALLERS1: 1,
      CRASHES: 1,
      MAX_IDLE: 4,
      CHECK: KNOWN + PROGRESS + IN_TURN,
    },
  },
  {
    name: 'nearer',
    set: {
      ...prompt,
      ...noLoss,
      KEEPS: 1,
      LEASE: 4,
      MIN: 3,
      COHORT: 0,
      CALLERS0: 1,
      CALLERS1: 1,
      CRASHES: 1,
      GIVE_UPS: 1,
      MAX_IDLE: 9,
      CHECK: KNOWN + PROGRESS + IN_TURN,
    },
  },
].map(({ name, set }) => ({ name, set: { ...anything, ...set, MUTANT: 0 } }));

/** `name` is the rule that is left out, `property` what must fail for that. */
const LEFT_OUT = [
  { name: 'RELEASE_ANY', in: 'faults', property: 'only_the_owner_changes' },
  { name: 'RENEW_ANY', in: 'faults', property: 'only_the_owner_changes' },
  // Without KNOWN, so that it is seen to break mutual exclusion itself.
  { name: 'NO_STAMP', in: 'faults', property: 'one_valid_holder', set: { CHECK: 0 } },
  { name: 'REVIVE', in: 'faults', property: 'redis_knows_the_lease' },
  { name: 'KEEP_LATE_GRANT', in: 'late', property: 'nothing_left' },
  { name: 'STAY_IN_QUEUE', in: 'tidy', property: 'nothing_left' },
  { name: 'WITHDRAW_SILENTLY', in: 'tidy', property: 'nothing_left' },
  { name: 'LOSE_SILENTLY', in: 'tidy', property: 'nothing_left' },
  { name: 'SAME_TOKEN', in: 'cohort', property: 'tokens_grow' },
  { name: 'NO_RESERVE', in: 'cohort', property: 'tokens_grow' },
  { name: 'NO_HEARTBEAT', in: 'messages', property: 'waiter_is_served' },
  { name: 'ROTATE_ONCE', in: 'command', property: 'waiter_is_served' },
  { name: 'FULL_TTL', in: 'crash', property: 'dead_owner_is_gone' },
  // Without KNOWN, as above.
  { name: 'RELEASE_FOREIGN', in: 'stranger', property: 'tokens_grow', set: { CHECK: 0 } },
  { name: 'NO_SEAL', in: 'stranger', property: 'tokens_grow', set: { CHECK: 0 } },
  { name: 'KEEP_OWNER', in: 'minimum', property: 'minimum_is_kept' },
  { name: 'KEEP_LEASE', in: 'kept', property: 'minimum_is_kept' },
  // One contender each is enough, and takes less memory.
  { name: 'KEEP_JOINS', in: 'keep', property: 'nothing_left', set: { IDS0: 1, CALLERS0: 1 } },
  { name: 'KEEP_STAMPS_ONLY', in: 'keep', property: 'redis_knows_the_lease' },
  { name: 'NO_KEEP', in: 'quiet', property: 'first_in_first_out' },
  { name: 'NO_PROBE', in: 'quiet', property: 'waiter_is_served' },
  { name: 'OLD_ANSWER', in: 'quiet', property: 'waiter_is_served' },
  { name: 'NO_LOOK', in: 'quiet', property: 'free_lock_is_granted' },
  { name: 'NO_SOONEST', in: 'quiet', property: 'free_lock_is_granted' },
  { name: 'TELL_ONE', in: 'nearer', property: 'free_lock_is_granted' },
  { name: 'LEAVE_UNTOLD', in: 'nearer', property: 'free_lock_is_granted' },
  { name: 'BARGE', in: 'crash', property: 'first_in_first_out' },
];

/** The model knows each by its place in this list, from 1; 0 is none. */
const MUTANTS = Object.fromEntries(LEFT_OUT.map(({ name }, index) => [name, index + 1]));
/** The named numbers of the model. */
export const NUMBERS = { ANY, ...CHECKS, ...MUTANTS };

export const mutants = LEFT_OUT.map(({ name, in: configuration, property, set }) => {
  const faithful = configurations.find((one) => one.name === configuration);
  return { name, property, set: { ...faithful.set, ...set, MUTANT: MUTANTS[name] } };
});
