/* Calls for several locks of a cluster, for Spin: one script for each slot, all under way at the same time. README.md
 * explains the configurations (what run.mjs sets with -D: every name in capitals that is not defined here) and the mutants.
 *
 * Each lock alone is lock.pml. So there is no time here: a call has what it was granted until it releases it or dies. What
 * no call knows of expires at any moment. A waiter that looks when a lease is over is the grant at its end. */
#define LOCKS 3
#define SLOT(r) ((r) % SLOTS)                 /* with 2 slots, one of them has the first and the last lock */
#define CALL_OF(id) (((id) - 1) / LOCKS)
#define BIT(r) (1 << (r))

/* The owner id of a lock: of each attempt its own. An attempt is known by the first lock that it asks for. */
#define ID(c, first) (1 + (c) * LOCKS + (MUTANT == SAME_OWNER -> 0 : (first)))

/* What a failure names. */
hidden byte one_valid_holder, redis_knows_the_lease, nothing_left, all_are_served, one_is_served;

/* MUTANT is 0 or one of the mutants, which configurations.mjs numbers. Where it is not defined, the program is told these numbers
 * when it starts: see lock.pml. */
#define TOLD(f) f(MUTANT) f(CRASHES) f(BREAKS) f(LOST_MESSAGES) f(TIMEOUTS) f(GIVE_UPS)
#ifndef MUTANT
#define DECLARE(name) hidden byte name;
#define READ(name) c_code { name = atoi(getenv(#name)); };
TOLD(DECLARE)
#define READ_NUMBERS TOLD(READ)
#else
#define READ_NUMBERS
#endif

mtype = { SOME, TWO, SAME };                  /* WANTED: any two or three locks; each call two others; all the same two */
mtype = { IDLE, WANTS, HOLDS, DONE, REFUSED, GAVE_UP, CRASHED };
mtype = { SENT, ANSWERED, BROKEN, GONE };     /* BROKEN: it may still be executed, but its answer is lost. GONE: no more */
byte crashes, breaks, lostMessages, timeouts, giveUps; /* how many are still allowed */
hidden byte x, y, r, f, c, old;               /* within one step only */
hidden byte isNext, isGranted, isUnknown;

/* ---- Redis ---- */
byte owner[LOCKS], waiters[LOCKS];
bit stray[LOCKS];                             /* granted by a command whose answer is lost, or with a message that was */
typedef Queue { byte at[CALLS] }
Queue queue[LOCKS];                           /* FIFO. Only the first lock of an attempt is waited for */

/* ---- The wires ---- of each call: for each first lock one command to each slot, and one for this lock alone. Behind the
 * last lock there is nothing to ask for. */
#define PER_CALL ((LOCKS - 1) * (SLOTS + 1) + 1)
#define WIRE(c, first, slot) ((c) * PER_CALL + (first) * (SLOTS + 1) + (slot))
#define ALONE(c, first) ((first) == LOCKS - 1 -> ((c) + 1) * PER_CALL - 1 : WIRE(c, first, SLOTS))
#define FIRST(w) (((w) % PER_CALL) / (SLOTS + 1))
#define IS_ALONE(w) ((w) == ALONE((w) / PER_CALL, FIRST(w)))
typedef Command { mtype is; byte asks, granted } /* sets of locks */
Command wire[CALLS * PER_CALL];

/* ---- The calls ---- */
mtype state[CALLS] = IDLE;
byte wants[CALLS];                            /* a set of locks */
byte at[CALLS];                               /* WANTS: the first lock that it has not got */
bit pending[CALLS];                           /* WANTS: its attempt for that one and those behind is not answered */
bit retry[CALLS];                             /* WANTS: it has to ask for that one again */
byte messages[CALLS];                         /* the locks that it was granted in their queues, on the way */
typedef Locks { byte on[LOCKS] }
Locks has[CALLS];                             /* the owner id by which it has the lock */
Locks giving[CALLS];                          /* of each lock, a set of attempts: to release until that is answered */
#define WAITS(i) (TRIES == 0)
#define ASKS_FOR(i, r) (state[i] == WANTS && at[i] == (r))

/* ============ Redis: the scripts, each one step ============ */
inline leaveQueue(r, id) {
  x = 0; do :: x < waiters[r] && queue[r].at[x] != id -> x++ :: else -> break od;
  if
  :: x < waiters[r] ->
     do :: x + 1 < waiters[r] -> queue[r].at[x] = queue[r].at[x + 1]; x++ :: else -> break od;
     waiters[r]--; queue[r].at[waiters[r]] = 0
  :: else
  fi
}
inline joinQueue(r, id) {
  x = 0; do :: x < waiters[r] && queue[r].at[x] != id -> x++ :: else -> break od;
  if :: x == waiters[r] -> queue[r].at[x] = id; waiters[r]++ :: else fi
}
inline grantNext(r) {                         /* a dead waiter that is granted it dies with it: see `expire` */
  owner[r] = 0; stray[r] = 0;
  if
  :: waiters[r] > 0 -> y = queue[r].at[0]; leaveQueue(r, y); owner[r] = y;
     if
     :: state[CALL_OF(y)] != CRASHED -> messages[CALL_OF(y)] = messages[CALL_OF(y)] | BIT(r)
     :: else
     fi
  :: else
  fi
}
inline acquire(w) {                           /* acquireSeveral, or acquire: stops at the first lock that is not granted */
  c = w / PER_CALL; f = FIRST(w); wire[w].granted = 0;
  r = 0;
  do
  :: r == LOCKS -> break
  :: else ->
     if
     :: wire[w].asks & BIT(r) ->
        if :: owner[r] == 0 && waiters[r] > 0 && queue[r].at[0] != ID(c, f) -> grantNext(r) :: else fi;
        if
        :: owner[r] == ID(c, f) ->
           stray[r] = stray[r] && wire[w].is == BROKEN; wire[w].granted = wire[w].granted | BIT(r); r++
        :: owner[r] == 0 ->
           leaveQueue(r, ID(c, f)); owner[r] = ID(c, f); stray[r] = (wire[w].is == BROKEN);
           wire[w].granted = wire[w].granted | BIT(r); r++
        :: else -> /* only the first lock of all has a queue to wait in */
           if :: r == f && WAITS(c) -> joinQueue(r, ID(c, f)) :: else fi;
           r = LOCKS
        fi
     :: else -> r++
     fi
  od;
  printf("redis   call %d, first %d: asked for %d, granted %d\n", c, f, wire[w].asks, wire[w].granted)
}
inline release(lock, id) {                    /* withdraw is the same */
  leaveQueue(lock, id);
  if
  :: owner[lock] == id || owner[lock] == 0 -> grantNext(lock)
  :: else
  fi
}

/* ============ The calls ============ */
#define IN_ATTEMPT(i, slot) wire[WIRE(i, at[i], slot)]
inline giveBack(i, lock, first) { giving[i].on[lock] = giving[i].on[lock] | BIT(first) }
inline clear(w) { wire[w].is = 0; wire[w].asks = 0; wire[w].granted = 0 }
inline goOn(i) {                              /* to the first lock that it has not got */
  x = 0; do :: x < LOCKS && (!(wants[i] & BIT(x)) || has[i].on[x]) -> x++ :: else -> break od;
  retry[i] = 0; pending[i] = 0; f = x;
  if
  :: f == LOCKS -> state[i] = HOLDS; at[i] = 0; printf("call %d HOLDS %d\n", i, wants[i])
  :: else ->
     at[i] = f;
     x = f + 1; do :: x < LOCKS && (!(wants[i] & BIT(x)) || has[i].on[x]) -> x++ :: else -> break od;
     if
     :: x == LOCKS -> retry[i] = 1            /* alone: there is nothing behind it */
     :: else ->
        pending[i] = 1;
        for (x : f .. LOCKS - 1) {
          if
          :: (wants[i] & BIT(x)) && !has[i].on[x] &&
             (WAITS(i) || SLOT(x) == SLOT(f) || MUTANT == TRY_AT_ONCE) -> /* one after another, where it does not wait */
             y = WIRE(i, f, SLOT(x)); wire[y].is = SENT; wire[y].asks = wire[y].asks | BIT(x)
          :: else
          fi
        };
        printf("call %d asks for %d and those behind\n", i, f)
     fi
  fi
}
inline abandon(i) {                           /* what its answers grant is released: now, and once more when they come */
  if
  :: pending[i] ->
     for (r : at[i] + 1 .. LOCKS - 1) {
       if :: IN_ATTEMPT(i, SLOT(r)).asks & BIT(r) -> giveBack(i, r, at[i]) :: else fi
     }
  :: else
  fi;
  pending[i] = 0
}
inline end(i, how) {                          /* releases all it has, and all it may have been granted */
  printf("call %d ends: %e\n", i, how);
  if :: state[i] == WANTS -> abandon(i); giveBack(i, at[i], at[i]) :: else fi;
  for (r : 0 .. LOCKS - 1) {
    if :: has[i].on[r] -> giveBack(i, r, (has[i].on[r] - 1) % LOCKS); has[i].on[r] = 0 :: else fi
  }
  state[i] = how; at[i] = 0; retry[i] = 0
}
inline getFirst(i) { has[i].on[at[i]] = ID(i, at[i]); abandon(i); goOn(i) }
inline conclude(i) {                          /* all answers to its attempt are there, or will never come */
  old = at[i]; isNext = 1; pending[i] = 0;
  isGranted = IN_ATTEMPT(i, SLOT(old)).is == ANSWERED && (IN_ATTEMPT(i, SLOT(old)).granted & BIT(old));
  isUnknown = IN_ATTEMPT(i, SLOT(old)).is != ANSWERED;
  for (r : old .. LOCKS - 1) {
    if
    :: (wants[i] & BIT(r)) && !has[i].on[r] ->
       y = WIRE(i, old, SLOT(r));
       isNext = isNext && wire[y].is == ANSWERED && (wire[y].granted & BIT(r));
       if
       :: isNext || MUTANT == KEEP_BEHIND_GAP && r != old && wire[y].is == ANSWERED && (wire[y].granted & BIT(r)) ->
          has[i].on[r] = ID(i, old)
       :: else ->
          if
          :: r != old && (wire[y].asks & BIT(r)) && (wire[y].is != ANSWERED || (wire[y].granted & BIT(r))) -> giveBack(i, r, old)
          :: else
          fi
       fi
    :: else
    fi
  };
  for (x : 0 .. SLOTS - 1) { if :: IN_ATTEMPT(i, x).is != BROKEN -> clear(WIRE(i, old, x)) :: else fi };
  if
  :: isGranted -> goOn(i)
  :: else ->
     if :: isUnknown -> retry[i] = 1 :: !isUnknown && !WAITS(i) -> end(i, REFUSED) :: else fi
  fi
}
inline onLateAnswer(w) {                      /* nobody waits for it: what it granted, and a place in a queue, is released */
  c = w / PER_CALL; old = FIRST(w);
  for (r : 0 .. LOCKS - 1) {
    if
    :: wire[w].is == ANSWERED && (wire[w].asks & BIT(r)) && has[c].on[r] != ID(c, old) && state[c] != CRASHED &&
       ((wire[w].granted & BIT(r)) || r == old && WAITS(c)) && !(r == old && ASKS_FOR(c, r)) ->
       if
       :: MUTANT == COUNT_LATE && state[c] == WANTS && at[c] == r && !has[c].on[r] -> has[c].on[r] = ID(c, old); goOn(c)
       :: MUTANT == FORGET_LATE
       :: else -> giveBack(c, r, old)
       fi
    :: else
    fi
  };
  clear(w)
}
inline onAnswerAlone(i) {
  y = ALONE(i, at[i]); isGranted = wire[y].granted != 0; clear(y);
  if
  :: isGranted -> getFirst(i)
  :: else -> if :: !WAITS(i) -> end(i, REFUSED) :: else fi
  fi
}
#define SETTLED(i, slot) ((slot) >= SLOTS || IN_ATTEMPT(i, (slot) % SLOTS).is != SENT)
#define ALL_SETTLED(i) (SETTLED(i, 0) && SETTLED(i, 1) && SETTLED(i, 2))
#define FIRST_IS_OPEN(i) (IN_ATTEMPT(i, SLOT(at[i])).is == SENT)
proctype Call(byte i) {
  do
  :: d_step { state[i] == IDLE -> state[i] = WANTS; goOn(i) }
  :: d_step { state[i] == WANTS && pending[i] && ALL_SETTLED(i) -> conclude(i) }
  :: d_step { state[i] == WANTS && pending[i] && timeouts > 0 && !retry[i] && FIRST_IS_OPEN(i) -> timeouts--; retry[i] = 1 }
  :: d_step { state[i] == WANTS && retry[i] && wire[ALONE(i, at[i])].is == 0 ->
       retry[i] = 0; wire[ALONE(i, at[i])].is = SENT; wire[ALONE(i, at[i])].asks = BIT(at[i]) }
  :: d_step { state[i] == WANTS && wire[ALONE(i, at[i])].is == ANSWERED -> onAnswerAlone(i) }
  :: d_step { messages[i] != 0 ->
       r = 0; do :: !(messages[i] & BIT(r)) -> r++ :: else -> break od;
       messages[i] = messages[i] & ~BIT(r);
       if
       :: ASKS_FOR(i, r) -> getFirst(i)
       :: else -> if :: has[i].on[r] != ID(i, r) && state[i] != CRASHED -> giveBack(i, r, r) :: else fi
       fi }
  :: d_step { messages[i] != 0 && lostMessages > 0 -> lostMessages--;
       r = 0; do :: !(messages[i] & BIT(r)) -> r++ :: else -> break od;
       messages[i] = messages[i] & ~BIT(r);
       if :: ASKS_FOR(i, r) -> retry[i] = 1 :: else -> stray[r] = stray[r] || owner[r] == ID(i, r) fi }
  :: d_step { state[i] == HOLDS -> end(i, DONE) }
  :: d_step { state[i] == WANTS && giveUps > 0 -> giveUps--; end(i, GAVE_UP) }
  :: d_step { state[i] != DONE && state[i] != REFUSED && state[i] != CRASHED && crashes > 0 -> crashes--;
       printf("call %d crashes\n", i); 
       for (r : 0 .. LOCKS - 1) { has[i].on[r] = 0; giving[i].on[r] = 0 };
       state[i] = CRASHED; pending[i] = 0; retry[i] = 0; at[i] = 0; messages[i] = 0 }
  od
}

/* ============ The wires ============ */
proctype Wire(byte w) {
  do
  :: d_step { wire[w].is == SENT -> acquire(w); wire[w].is = ANSWERED }
  :: d_step { wire[w].is == BROKEN -> acquire(w); wire[w].is = GONE }
  :: d_step { wire[w].is == BROKEN -> wire[w].is = GONE } /* or is never executed */
  :: d_step { wire[w].is == SENT && breaks > 0 -> breaks--; wire[w].is = BROKEN;
       if :: IS_ALONE(w) && ASKS_FOR(w / PER_CALL, FIRST(w)) -> retry[w / PER_CALL] = 1 :: else fi }
  :: d_step { wire[w].is == GONE && !(pending[w / PER_CALL] && at[w / PER_CALL] == FIRST(w) && !IS_ALONE(w)) -> clear(w) }
  :: d_step { wire[w].is == ANSWERED && (IS_ALONE(w) -> !ASKS_FOR(w / PER_CALL, FIRST(w)) :
         !(pending[w / PER_CALL] && ASKS_FOR(w / PER_CALL, FIRST(w)))) -> onLateAnswer(w) }
  od
}

/* ============ Releases arrive, in any order, late or soon; leases end ============ */
inline giveOne(i, lock) {
  f = 0; do :: !(giving[i].on[lock] & BIT(f)) -> f++ :: else -> break od;
  giving[i].on[lock] = giving[i].on[lock] & ~BIT(f);
  printf("redis   call %d releases lock %d of its attempt %d\n", i, lock, f);
  release(lock, ID(i, f))
}
#define IS_KNOWN(r) (has[CALL_OF(owner[r])].on[r] == owner[r] || \
  ASKS_FOR(CALL_OF(owner[r]), r) && owner[r] == ID(CALL_OF(owner[r]), r))
proctype Lock(byte r0) {
  do
  :: d_step { giving[0].on[r0] != 0 -> giveOne(0, r0) }
  :: d_step { giving[1].on[r0] != 0 -> giveOne(1, r0) }
  :: d_step { giving[CALLS - 1].on[r0] != 0 -> giveOne(CALLS - 1, r0) }
  :: d_step { owner[r0] != 0 && (state[CALL_OF(owner[r0])] == CRASHED || stray[r0] && !IS_KNOWN(r0)) ->
       printf("redis   lock %d of %d expires\n", r0, owner[r0]); grantNext(r0) }
  od
}
/* ============ Properties ============ */
#define BACKED(i, r) (has[i].on[r] == 0 || has[i].on[r] == owner[r])
#define ALL_BACKED(i) (BACKED(i, 0) && BACKED(i, 1) && BACKED(i, 2))
#define HAVE(r) ((has[0].on[r] != 0) + (has[1].on[r] != 0) + (CALLS == 3 && has[CALLS - 1].on[r] != 0))
#define IS_OVER(i) (state[i] == DONE || state[i] == REFUSED || state[i] == GAVE_UP || state[i] == CRASHED)
proctype Monitor() {
  do
  :: d_step { HAVE(0) > 1 || HAVE(1) > 1 || HAVE(2) > 1 -> one_valid_holder = 0; assert(one_valid_holder) }
  :: d_step { !ALL_BACKED(0) || !ALL_BACKED(1) || !ALL_BACKED(CALLS - 1) -> redis_knows_the_lease = 0; assert(redis_knows_the_lease) }
  :: false
  od
}
proctype End() {
  timeout;                                    /* nothing can happen any more */
  all_are_served = IS_OVER(0) && IS_OVER(1) && IS_OVER(CALLS - 1); assert(all_are_served);
  nothing_left = owner[0] + owner[1] + owner[2] + waiters[0] + waiters[1] + waiters[2] == 0; assert(nothing_left);
  one_is_served = !TRIES || state[0] == DONE || state[1] == DONE || state[CALLS - 1] == DONE; assert(one_is_served)
}
init {
  atomic {
    READ_NUMBERS
    crashes = CRASHES; breaks = BREAKS; lostMessages = LOST_MESSAGES; timeouts = TIMEOUTS; giveUps = GIVE_UPS;
    for (x : 0 .. CALLS - 1) {
      if
      :: WANTED == SOME -> if :: wants[x] = 3 :: wants[x] = 5 :: wants[x] = 6 :: wants[x] = 7 fi
      :: WANTED == TWO -> wants[x] = 7 - BIT(x)
      :: WANTED == SAME -> wants[x] = 3
      fi
    };
    for (x : 0 .. CALLS - 1) { run Call(x) }
    for (x : 0 .. CALLS * PER_CALL - 1) { run Wire(x) }
    for (x : 0 .. LOCKS - 1) { run Lock(x) }
    run Monitor(); run End()
  }
}
