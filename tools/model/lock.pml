/* The lock protocol on one Redis primary, for Spin. README.md explains the configurations (what run.mjs sets with -D:
 * every name in capitals that is not defined here) and the mutants.
 *
 * Whatever ends at some moment is a count-down in ticks, and a tick counts all of them down at once: clocks advance
 * together. `sentAt` travels as what is left of (sentAt + leaseMs), called `left`. A lease is valid while something is
 * left of it: strictly before its deadline, which stands for the drift allowance. */
#define NOBODY 0
#define KEPT 254                              /* owner of a lock that was released before its minimum, MIN ticks */
#define CONTENDERS (IDS0 + INSTANCES - 1)     /* contender ids: 1 to IDS0 of instance 0, one of each other */
#define INSTANCE(c) ((c) <= IDS0 -> 0 : (c) - IDS0)
#define CAN_BEGIN(i) (idsUsed[i] < ((i) == 0 -> IDS0 : 1)) /* has an id left for a new contender */
#define WIRES (INSTANCES - 1 + WIRES0)        /* commands in flight: instance 0 has WIRES0 (1 or 2), the others one */
#define SECOND (WIRES - 1)                    /* of instance 0, if WIRES0 is 2; the first of an instance has its number */
#define SENDER(k) ((k) < INSTANCES -> (k) : 0)
#define FREE(i) (wire[i].command == 0 || WIRES0 == 2 && (i) == 0 && wire[SECOND].command == 0)
#define TOKENS_PER_TICK (MUTANT == NO_RESERVE -> 1 : COHORT + 1)
#define COUNT_DOWN(t) t = ((t) > 0 -> (t) - 1 : 0)
#define USE(fault) fault = (fault == ANY -> ANY : fault - 1)

/* What a failure names. The first three and minimum_is_kept are always checked, the others if CHECK, a sum, has the number of
 * theirs: KNOWN of redis_knows_the_lease, NOTHING of nothing_left, IN_TURN of first_in_first_out, PROGRESS of the three that
 * need PROMPT. */
hidden byte one_valid_holder, tokens_grow, only_the_owner_changes, redis_knows_the_lease, nothing_left;
hidden byte first_in_first_out, waiter_is_served, free_lock_is_granted, dead_owner_is_gone, minimum_is_kept;

/* MUTANT is 0 or one of the mutants, which configurations.mjs numbers. What changes neither the size of a state nor its steps
 * is told to the program when it starts, where it is not defined: so one program is made for many configurations. */
#define TOLD(f) f(MUTANT) f(CHECK) f(TICKS) f(LEASE) f(MIN) f(KEEPS) f(COHORT) f(PROMPT) f(MAX_IDLE) f(CALLERS0) f(CALLERS1) \
  f(DEAF) f(CRASHES) f(LOST_COMMANDS) f(LOST_REPLIES) f(LOST_MESSAGES) f(DOUBLED) f(GIVE_UPS)
#ifndef MUTANT
#define DECLARE(name) hidden byte name;
#define READ(name) c_code { name = atoi(getenv(#name)); };
TOLD(DECLARE)
#define READ_NUMBERS TOLD(READ)
#else
#define READ_NUMBERS
#endif

mtype = { ACQUIRE, RELEASE, RETAIN, RENEW, ROTATE, GRANTED, QUEUED, OK, LOST };
mtype = { KEEP, STAYS, ASK };                 /* to keep a place, and what has become of it */
mtype = { IDLE, WAIT, HOLD, LEAVE, DONE, CRASHED };
byte crashes, lostCommands, lostReplies, lostMessages, doubled, giveUps, replays; /* how many are still allowed */
hidden byte x, y, z, who, old, head, headTtl, headStamp, ownerBefore, ttlBefore, tokenBefore; /* within one step only */

/* ---- Redis ---- */
byte owner, ttl, token, fence;                /* the lock; the last tick */
byte minimum;                                 /* what is left of MIN ticks since the grant: the token tells it */
byte queue[CONTENDERS], waiters;              /* FIFO, and its length */
byte expiry[CONTENDERS + 1], stamp[CONTENDERS + 1]; /* of a waiter; the stamp is of the acquire that set the expiry */
byte deaf; /* 1 + the instance whose inbox nobody listens to while this script runs */

/* ---- The wires ---- once a command has run, its slot carries the reply; `rotated`: the owner that rotate releases.
 * RESTS: `token` of QUEUED and STAYS: in how many ticks to look; `doubted`: sent before a loss was noticed */
typedef Command { mtype command, reply; byte contender, rotated, left, token; bit doubted }
typedef Message { byte contender, left, token; bit altered }
Command wire[WIRES];
Message inbox[INSTANCES];
Message heard;                                /* REPLAYS: one that a stranger on the channels keeps */

/* ---- The clients ---- */
mtype state[INSTANCES] = IDLE;
byte contender[INSTANCES], rotated[INSTANCES]; /* `rotated`: of a rotate that is not answered yet */
byte left[INSTANCES], leaseToken[INSTANCES], handOvers[INSTANCES]; /* the lease */
byte idsUsed[INSTANCES], callers[INSTANCES]; /* local callers not served yet, with the present one */
bit retains[INSTANCES];                       /* LEAVE: it has held the lock, and releases it not before its minimum */
bit told[INSTANCES];                          /* PROMPT: has sent its one command of this tick */
bit unanswered[CONTENDERS + 1];               /* a reply to an acquire or rotate of this contender was lost */
byte lastToken;                               /* ghost: of the last lease that started */
byte keptFor;                                 /* ghost: for how long no other lease may begin */
byte place[INSTANCES], placed;                /* ghost, IN_TURN: the order in which the waiting instances were queued */
byte idle, unowned, dead[INSTANCES];          /* ghosts, PROGRESS: ticks */
#define VALID(i) (state[i] == HOLD && left[i] > 0)
#define RESTS (KEEPS && PROMPT)                /* a waiter is silent until it has to keep its place, or to ask */
bit calm[INSTANCES];                          /* it has to ask with its next command, unless this is set */
byte rest[INSTANCES];                         /* ticks until its place has to be kept, to keep it or to look */
bit missed[INSTANCES];                        /* a message was lost, and no probe has shown it yet */
#define DUE(i) (FREE(i) && (!PROMPT || !told[i]))

/* ============ Ghosts for first in, first out: who waits, in the order in which they were queued ============ */
inline noteArrival(c) {
  if
  :: (CHECK & IN_TURN) && place[INSTANCE(c)] == 0 && state[INSTANCE(c)] == WAIT && contender[INSTANCE(c)] == c ->
     placed++; place[INSTANCE(c)] = placed
  :: else
  fi
}
inline noteDeparture(i) {
  for (z : 0 .. INSTANCES - 1) { place[z] = (place[i] > 0 && place[z] > place[i] -> place[z] - 1 : place[z]) }
  placed = placed - (place[i] > 0); place[i] = 0
}
inline noteGrant(c) {
  first_in_first_out = placed == 0 || place[INSTANCE(c)] == 1 ||
    state[INSTANCE(c)] != WAIT || contender[INSTANCE(c)] != c; /* no real grant: nobody waits for it any more */
  assert(first_in_first_out); noteDeparture(INSTANCE(c)); idle = 0; unowned = 0
}

/* ============ Redis: the scripts, each one step ============ */
inline find(c) { x = 0; do :: x < waiters && queue[x] != c -> x++ :: else -> break od }
inline leaveQueue(c) {
  find(c);
  if
  :: x < waiters ->
     do :: x + 1 < waiters -> queue[x] = queue[x + 1]; x++ :: else -> break od;
     waiters--; queue[waiters] = 0; expiry[c] = 0; stamp[c] = 0
  :: else
  fi
}
inline joinQueue(c, sent) {                   /* at the tail, or in place; expiry and stamp are always of one acquire */
  find(c); if :: x == waiters -> queue[x] = c; waiters++; noteArrival(c) :: else fi;
  expiry[c] = LEASE; stamp[c] = sent
}
inline takeLock(c, forTicks) {
  minimum_is_kept = keptFor == 0; assert(minimum_is_kept);
  owner = c; ttl = forTicks; minimum = MIN; fence++; token = fence * TOKENS_PER_TICK; noteGrant(c)
}
inline miss(i) { missed[i] = (RESTS && state[i] == WAIT && MUTANT != NO_PROBE) }
inline publish(c, echoed) { /* here an inbox holds one message: of two, one is lost, the old or the new */
  if
  :: state[INSTANCE(c)] != CRASHED && (inbox[INSTANCE(c)].contender == 0 || lostMessages == 0) ->
     inbox[INSTANCE(c)].contender = c; inbox[INSTANCE(c)].left = echoed; inbox[INSTANCE(c)].token = token;
     inbox[INSTANCE(c)].altered = 0
  :: else -> miss(INSTANCE(c))
  fi;
  if
  :: replays > 0 && heard.contender == 0 -> heard.contender = c; heard.left = echoed; heard.token = token
  :: else
  fi
}
inline grantNext() {                          /* to the first live waiter; without one the lock is deleted */
  owner = NOBODY; ttl = 0; token = 0; minimum = 0;
  do
  :: owner != NOBODY || waiters == 0 -> break
  :: else ->
     head = queue[0]; headTtl = expiry[head]; headStamp = stamp[head]; leaveQueue(head);
     if
     :: headTtl > 0 && deaf != INSTANCE(head) + 1 -> /* otherwise expired, or PUBLISH reached 0 receivers: the next */
        headTtl = (MUTANT == FULL_TTL -> LEASE : headTtl); takeLock(head, headTtl); publish(head, headStamp)
     :: else
     fi
  od
}
inline acquire(c, k) {
  do :: waiters > 0 && expiry[queue[0]] == 0 -> head = queue[0]; leaveQueue(head) :: else -> break od; /* step 1 */
  if :: owner == NOBODY && waiters > 0 && queue[0] != c && MUTANT != BARGE -> grantNext() :: else fi; /* step 4 */
  if
  :: owner == c -> ttl = LEASE; wire[k].reply = GRANTED; wire[k].token = token /* step 2 */
  :: owner == NOBODY -> leaveQueue(c); takeLock(c, LEASE); wire[k].reply = GRANTED; wire[k].token = token /* step 3 */
  :: else -> joinQueue(c, wire[k].left); wire[k].reply = QUEUED /* step 5 */
  fi
}
inline tellOfEnd(ends) { /* the lock ends sooner than the waiters know: each one behind another looks a tick later */
  y = 0;
  do
  :: RESTS && MIN > 0 && y < waiters && (y == 0 || MUTANT != TELL_ONE) ->
     z = INSTANCE(queue[y]);
     rest[z] = (state[z] == WAIT && rest[z] > ends + y -> ends + y : rest[z]);
     /* an answer that is on its way was sent before */
     wire[z].token = (wire[z].contender == queue[y] && (wire[z].reply == QUEUED ||
       wire[z].reply == STAYS) && wire[z].token > ends + y -> ends + y : wire[z].token);
     y++
  :: else -> break
  od
}
inline release(c, k) {                        /* withdraw is the same */
  find(c); head = x < waiters;
  if :: MUTANT != STAY_IN_QUEUE -> leaveQueue(c) :: else fi;
  if :: head && owner != NOBODY && owner != c && MUTANT != LEAVE_UNTOLD -> tellOfEnd(ttl) :: else fi;
  if
  :: owner == c || MUTANT == RELEASE_ANY && owner != NOBODY -> grantNext(); wire[k].reply = OK
  :: else -> if :: owner == NOBODY -> grantNext() :: else fi; wire[k].reply = LOST /* its holder died */
  fi
}
inline retain(c, k) {                         /* release, but not before the minimum: then the lock has no owner */
  if
  :: owner == c && minimum > 0 ->
     keptFor = minimum; ttl = (MUTANT == KEEP_LEASE -> LEASE : minimum);
     owner = (MUTANT == KEEP_OWNER -> c : KEPT); wire[k].reply = OK; tellOfEnd(ttl)
  :: else -> release(c, k)
  fi
}
inline keep(c, k) {                           /* neither joins nor grants: so a late one does no harm */
  find(c);
  if
  :: x < waiters && expiry[c] > 0 && owner != NOBODY || MUTANT == KEEP_JOINS ->
     if :: MUTANT == KEEP_STAMPS_ONLY -> stamp[c] = wire[k].left :: else -> joinQueue(c, wire[k].left) fi;
     wire[k].reply = STAYS
  :: else -> wire[k].reply = ASK
  fi
}
inline tellWhenToLook(k) {                    /* when the holder's lease is over, or a place: then a grant to it is */
  y = ttl;
  for (x : 0 .. waiters - 1) {
    y = (MUTANT != NO_SOONEST && expiry[queue[x]] > 0 && expiry[queue[x]] < y -> expiry[queue[x]] : y)
  }
  wire[k].token = y
}
inline renew(c, k) {
  if
  :: owner == c || MUTANT == RENEW_ANY && owner != NOBODY -> ttl = LEASE; wire[k].reply = OK
  :: else -> wire[k].reply = LOST
  fi
}
inline execute(k) {
  who = wire[k].contender; old = wire[k].rotated;
  printf("redis    runs %e of %d (rotated %d) from instance %d\n", wire[k].command, who, old, SENDER(k));
  ownerBefore = owner; ttlBefore = ttl; tokenBefore = token;
  if
  :: wire[k].command == ACQUIRE -> acquire(who, k)
  :: wire[k].command == RELEASE -> release(who, k)
  :: wire[k].command == RETAIN -> retain(who, k)
  :: wire[k].command == RENEW -> renew(who, k)
  :: wire[k].command == ROTATE -> release(old, k); acquire(who, k)
  :: wire[k].command == KEEP -> keep(who, k)
  fi;
  if :: RESTS && (wire[k].reply == QUEUED || wire[k].reply == STAYS) -> tellWhenToLook(k) :: else fi;
  printf("         %e: owner %d, ttl %d, token %d, waiters %d\n", wire[k].reply, owner, ttl, token, waiters);
  only_the_owner_changes = ownerBefore == NOBODY || ownerBefore == who || ownerBefore == old ||
    owner == ownerBefore && ttl == ttlBefore && token == tokenBefore;
  assert(only_the_owner_changes); deaf = 0
}

/* ============ The slots of the wires ============ */
#define WEIGHT(k) (((((wire[k].command * 16 + wire[k].reply) * 8 + wire[k].contender) * 4 + wire[k].left) * 8 + \
  wire[k].rotated) * 16 + wire[k].token)
#define SWAP(f) y = wire[0].f; wire[0].f = wire[SECOND].f; wire[SECOND].f = y
inline sortWires() { /* the two slots of instance 0 are alike: one order for them saves states */
  if
  :: WIRES0 == 2 && WEIGHT(0) < WEIGHT(SECOND) ->
     SWAP(command); SWAP(reply); SWAP(contender); SWAP(rotated); SWAP(left); SWAP(token)
  :: else
  fi
}
inline send(i, what, c, releases, lease) {
  x = (wire[i].command == 0 -> i : SECOND);
  wire[x].command = what; wire[x].contender = c; wire[x].rotated = releases; wire[x].left = lease;
  printf("client %d sends %e of %d (rotated %d)\n", i, what, c, releases)
}
inline clear(k) {
  wire[k].command = 0; wire[k].reply = 0; wire[k].contender = 0;
  wire[k].rotated = 0; wire[k].left = 0; wire[k].token = 0; wire[k].doubted = 0
}

/* ============ The client ============ */
inline stopWaiting(i) { calm[i] = 0; rest[i] = 0; missed[i] = 0 }
inline startLease(i, valid, itsToken) {
  printf("client %d HOLDS: contender %d, token %d, valid for %d\n", i, contender[i], itsToken, valid);
  tokens_grow = itsToken > lastToken; assert(tokens_grow);
  idle = 0; lastToken = itsToken; state[i] = HOLD; left[i] = valid; leaseToken[i] = itsToken; rotated[i] = 0;
  stopWaiting(i)
}
inline endLease(i) { left[i] = 0; leaseToken[i] = 0; handOvers[i] = 0 }
inline newContender(i) { idsUsed[i]++; contender[i] = (i == 0 -> idsUsed[i] : IDS0 + i); endLease(i); state[i] = WAIT }
inline finish(i) {                            /* the next local caller begins with a new contender */
  noteDeparture(i); stopWaiting(i); endLease(i); contender[i] = 0; rotated[i] = 0; retains[i] = 0; callers[i]--;
  state[i] = (callers[i] > 0 && CAN_BEGIN(i) -> IDLE : DONE)
}
inline leave(i) {                             /* to send release (or withdraw) until it is answered */
  printf("client %d leaves\n", i); retains[i] = (MIN > 0 && state[i] == HOLD);
  noteDeparture(i); stopWaiting(i); endLease(i); state[i] = LEAVE; told[i] = 0
}
inline lose(i) { /* a late renewal may have kept the lock, so it is released all the same */
  if :: MUTANT == LOSE_SILENTLY -> finish(i) :: else -> leave(i) fi
}
inline onReply(k) {
  y = SENDER(k); who = wire[k].contender;
  printf("client %d gets %e to %e of %d, left %d\n", y, wire[k].reply, wire[k].command, who, wire[k].left);
  if
  :: who == contender[y] && wire[k].command == ROTATE || who == rotated[y] && wire[k].command == RELEASE ->
     rotated[y] = 0
  :: else
  fi;
  if
  :: who == contender[y] && state[y] == WAIT -> /* a grant that is over already: the next heartbeat asks again */
     if :: wire[k].reply == GRANTED && wire[k].left > 0 -> startLease(y, wire[k].left, wire[k].token) :: else fi;
     if
     :: RESTS && (wire[k].reply == QUEUED || wire[k].reply == STAYS) -> /* to look is to keep the place early */
        rest[y] = (MUTANT == NO_LOOK || wire[k].token > LEASE - 1 && MUTANT != NO_KEEP -> LEASE - 1 : wire[k].token);
        /* what was sent before a loss was noticed calms nobody: its place may have become the grant that was lost */
        calm[y] = !wire[k].doubted || MUTANT == OLD_ANSWER
     :: RESTS && wire[k].reply == ASK -> calm[y] = 0; told[y] = 0
     :: else
     fi;
     clear(k)
  :: who == contender[y] && state[y] == HOLD -> /* no revival: after the deadline it is lost, whatever the reply */
     if
     :: left[y] == 0 && MUTANT != REVIVE || wire[k].reply == LOST -> lose(y)
     :: else ->
        if
        :: (wire[k].reply == OK || wire[k].reply == GRANTED) && wire[k].left > left[y] -> left[y] = wire[k].left
        :: else
        fi
     fi; clear(k)
  :: who == contender[y] && state[y] == LEAVE && (wire[k].command == RELEASE || wire[k].command == RETAIN) -> finish(y); clear(k)
  :: else -> /* a late grant, or a late place in the queue: the slot goes on with the release that answers it */
     if
     :: (wire[k].reply == GRANTED && MUTANT != KEEP_LATE_GRANT || wire[k].reply == QUEUED) &&
        state[y] != CRASHED ->
        clear(k); wire[k].command = RELEASE; wire[k].contender = who
     :: else -> clear(k)
     fi
  fi
}
inline forget(i) { inbox[i].contender = 0; inbox[i].left = 0; inbox[i].token = 0; inbox[i].altered = 0 }
/* Whether something that the instance has sent may still put the contender in the queue, as far as it knows. Where nobody
 * looks for what is left (CHECK), it keeps everybody in mind. */
#define ASKS(i, k, c) ((k) < WIRES && SENDER(k) == (i) && wire[k].contender == (c) && \
  (wire[k].command == ACQUIRE || wire[k].command == ROTATE))
#define MAY_BE_QUEUED(i, c) (!(CHECK & NOTHING) || unanswered[c] || ASKS(i, i, c) || WIRES0 == 2 && (i) == 0 && ASKS(i, SECOND, c))
inline onMessage(i) {
  who = inbox[i].contender;
  printf("client %d gets the grant of %d, token %d, left %d\n", i, who, inbox[i].token, inbox[i].left);
  if :: MUTANT == NO_STAMP -> inbox[i].left = LEASE :: else fi;
  if
  :: state[i] == CRASHED || who == contender[i] && state[i] == HOLD
  :: inbox[i].altered && MUTANT != NO_SEAL /* its seal does not fit */
  :: INSTANCE(who) != i && MUTANT != RELEASE_FOREIGN && (!inbox[i].altered || MUTANT == NO_SEAL) /* not of this client */
  :: who == contender[i] && state[i] == WAIT && (!inbox[i].altered || MUTANT == NO_SEAL) ->
     if :: inbox[i].left > 0 -> startLease(i, inbox[i].left, inbox[i].token) :: else fi
  :: else ->
     if
     :: MUTANT != KEEP_LATE_GRANT && (MAY_BE_QUEUED(i, who) || INSTANCE(who) != i) -> send(i, RELEASE, who, 0, 0)
     :: else
     fi
  fi;
  forget(i)
}
/* ============ The wires: all may be late; lost, doubled, out of order if the configuration allows it ============ */
inline loseReply(k) {
  if
  :: (CHECK & NOTHING) && (wire[k].command == ACQUIRE || wire[k].command == ROTATE) -> unanswered[wire[k].contender] = 1
  :: else
  fi; clear(k)
}
#define UNRUN(k) (wire[k].command != 0 && wire[k].reply == 0)
#define CAN_BE_DEAF(i) (state[i] == CRASHED || DEAF) /* PUBLISH reaches nobody */
inline runWire(k) {
  if
  :: atomic { UNRUN(k) && fence < TICKS ->    /* the run is cut after that many tenures, so that it is finite */
       if :: true :: CAN_BE_DEAF(0) -> deaf = 1 :: CAN_BE_DEAF(1) -> deaf = 2 fi;
       d_step { execute(k); sortWires() } }
  :: d_step { UNRUN(k) && lostCommands > 0 -> USE(lostCommands); clear(k); sortWires() }
  :: d_step { wire[k].reply != 0 && lostReplies > 0 -> USE(lostReplies); loseReply(k); sortWires() }
  :: d_step { UNRUN(k) && WIRES0 == 2 && SENDER(k) == 0 && wire[SECOND - k].command == 0 && doubled > 0 -> USE(doubled);
       wire[SECOND - k].command = wire[k].command; wire[SECOND - k].contender = wire[k].contender;
       wire[SECOND - k].rotated = wire[k].rotated; wire[SECOND - k].left = wire[k].left; sortWires() }
  :: d_step { wire[k].reply != 0 -> onReply(k); sortWires() }
  fi
}

/* ============ An instance ============ */
proctype Instance(byte i) {
  do
#if WIRES0 == 1                               /* no process of its own: that makes a state smaller */
  :: runWire(i)
#endif
  :: d_step { inbox[i].contender != 0 && FREE(i) -> onMessage(i); sortWires() }
  :: d_step { inbox[i].contender != 0 && lostMessages > 0 -> USE(lostMessages); miss(i); forget(i) }
  :: d_step { state[i] == IDLE && DUE(i) ->
       newContender(i); send(i, ACQUIRE, contender[i], 0, LEASE); told[i] = PROMPT; sortWires() }
  :: d_step { state[i] == WAIT && DUE(i) && MUTANT != NO_HEARTBEAT && (!RESTS || !calm[i]) ->
       if
       :: rotated[i] != 0 && MUTANT != ROTATE_ONCE -> send(i, ROTATE, contender[i], rotated[i], LEASE)
       :: else -> send(i, ACQUIRE, contender[i], 0, LEASE)
       fi; told[i] = PROMPT; sortWires() }
  :: d_step { KEEPS && state[i] == WAIT && DUE(i) && (MUTANT != NO_KEEP || rest[i] == 0) && (!RESTS || calm[i]) && rotated[i] == 0 ->
       send(i, KEEP, contender[i], 0, LEASE); told[i] = PROMPT; sortWires() }
  :: d_step { missed[i] -> missed[i] = 0; /* a probe shows it */
       printf("client %d notices a loss\n", i); calm[i] = 0; wire[i].doubted = !FREE(i) }
  :: d_step { state[i] == WAIT && giveUps > 0 -> USE(giveUps); /* withdraws */
       if :: MUTANT == WITHDRAW_SILENTLY -> finish(i) :: else -> leave(i) fi }
  :: d_step { state[i] == WAIT && giveUps > 0 && callers[i] > 1 -> USE(giveUps); callers[i]-- } /* or is inherited */
  :: d_step { VALID(i) && DUE(i) -> send(i, RENEW, contender[i], 0, LEASE); told[i] = PROMPT; sortWires() }
  :: d_step { VALID(i) -> leave(i) }
  :: d_step { VALID(i) && callers[i] > 1 && handOvers[i] < COHORT && MIN == 0 -> /* in memory: the next token, the same deadline */
       callers[i]--; handOvers[i]++; x = leaseToken[i] + (MUTANT != SAME_TOKEN); startLease(i, left[i], x) }
  :: d_step { VALID(i) && callers[i] > 1 && CAN_BEGIN(i) && FREE(i) && MIN == 0 -> callers[i]--; rotated[i] = contender[i];
       newContender(i); send(i, ROTATE, contender[i], rotated[i], LEASE); told[i] = PROMPT; sortWires() }
  :: d_step { state[i] == HOLD && left[i] == 0 -> lose(i) }
  :: d_step { state[i] == LEAVE && DUE(i) -> /* after an unanswered rotate there are two to release */
       y = (rotated[i] != 0 -> rotated[i] : contender[i]); if :: retains[i] -> send(i, RETAIN, y, 0, 0) :: else -> send(i, RELEASE, y, 0, 0) fi; told[i] = PROMPT; sortWires() }
  :: d_step { state[i] != DONE && state[i] != CRASHED && crashes > 0 -> USE(crashes);
       printf("client %d crashes\n", i); finish(i); callers[i] = 0; state[i] = CRASHED }
  od
}

#if WIRES0 == 2
proctype Wire(byte k) { do :: runWire(k) od }
#endif

/* ============ A stranger who hears all inboxes and writes to all of them, but has no key ============ */
inline replay(i, other) {                     /* or with another stamp: as if it were sent now */
  USE(replays); printf("stranger writes to %d\n", i);
  inbox[i].contender = heard.contender; inbox[i].token = heard.token;
  inbox[i].left = (other -> LEASE : heard.left); inbox[i].altered = other
}

/* ============ Properties ============ */
#define EVERY(p) (p(0) && p(1) && p(INSTANCES - 1)) /* of 2 or 3 */
#define EVERY_WIRE(p) (p(0) && p(1) && p(WIRES - 2) && p(WIRES - 1)) /* of 2 to 4 */
#define BACKED(i) (!VALID(i) || owner == contender[i] && token == leaseToken[i] - handOvers[i])
#define GONE(i) (state[i] == DONE && inbox[i].contender == 0)
#define EMPTY(k) (wire[k].command == 0)
#define QUIET (EVERY(GONE) && EVERY_WIRE(EMPTY))

/* ============ Time ============ */
/* PROMPT: whatever is not lost takes less than a tick, and every client does in time what it has to do in each tick. */
#define MAY_REST(i) (RESTS && state[i] == WAIT && calm[i] && rest[i] > 0)
#define CALM(i) (inbox[i].contender == 0 && !missed[i] && (state[i] == IDLE || state[i] == DONE || state[i] == CRASHED || \
  MAY_REST(i) || told[i] && (state[i] != HOLD || left[i] > 0) || state[i] == WAIT && MUTANT == NO_HEARTBEAT))
#define NOT_WAITING(i) (state[i] != WAIT)
#define NOT_VALID(i) (!VALID(i))
#define NOT_OVERDUE(i) (dead[i] <= LEASE || owner == NOBODY || owner == KEPT || INSTANCE(owner) != i)
/* Nothing can be granted to it any more: one state, whether that is known or not. */
#define FORGOTTEN(c) (contender[INSTANCE(c)] != (c) && expiry[c] == 0 && inbox[INSTANCE(c)].contender != (c) && \
  heard.contender == 0 && !ASKS(INSTANCE(c), INSTANCE(c), c) && WIRES0 == 1)
inline checkProgress() {                      /* `idle`, `unowned`: for how many ticks in a row, while somebody waits */
  idle = (!EVERY(NOT_WAITING) && EVERY(NOT_VALID) -> idle + 1 : 0);
  unowned = (!EVERY(NOT_WAITING) && owner == NOBODY -> unowned + 1 : 0);
  for (x : 0 .. INSTANCES - 1) { dead[x] = (state[x] == CRASHED && dead[x] <= LEASE -> dead[x] + 1 : dead[x]) }
  waiter_is_served = idle <= (RESTS && MIN == 0 && crashes == CRASHES -> 1 : MAX_IDLE); assert(waiter_is_served);
  free_lock_is_granted = unowned <= (!RESTS || MIN > 0 && crashes < CRASHES); assert(free_lock_is_granted);
  dead_owner_is_gone = EVERY(NOT_OVERDUE); assert(dead_owner_is_gone)
}

/* ============ The properties, time and the stranger: one process, for a small state; it is the first to be tried ============ */
proctype World() {
  do
  :: d_step { VALID(0) + VALID(1) + (INSTANCES == 3 && VALID(INSTANCES - 1)) > 1 ->
       one_valid_holder = 0; assert(one_valid_holder) }
  :: d_step { (CHECK & KNOWN) && !EVERY(BACKED) -> redis_knows_the_lease = 0; assert(redis_knows_the_lease) }
  :: d_step { (CHECK & NOTHING) && QUIET && (owner == KEPT -> waiters : owner + waiters) > 0 -> nothing_left = 0; assert(nothing_left) }
  :: d_step { !PROMPT || EVERY(CALM) && EVERY_WIRE(EMPTY) ->
       printf("-------- tick\n");
       if :: CHECK & PROGRESS -> checkProgress() :: else fi;
       for (x : 0 .. WIRES - 1) { COUNT_DOWN(wire[x].left) }
       COUNT_DOWN(heard.left);
       for (x : 1 .. CONTENDERS) { unanswered[x] = unanswered[x] && !FORGOTTEN(x) }
       for (x : 0 .. INSTANCES - 1) { COUNT_DOWN(inbox[x].left); COUNT_DOWN(left[x]); told[x] = 0;
         COUNT_DOWN(rest[x]) }
       for (x : 1 .. CONTENDERS) { COUNT_DOWN(expiry[x]); COUNT_DOWN(stamp[x]) }
       COUNT_DOWN(ttl); COUNT_DOWN(minimum); COUNT_DOWN(keptFor);
       if :: ttl == 0 -> owner = NOBODY; token = 0; minimum = 0 :: else fi;
       x = 0; do :: x < waiters && expiry[queue[x]] == 0 -> x++ :: else -> break od; /* the queue's own TTL */
       if :: x == waiters -> do :: waiters > 0 -> waiters--; queue[waiters] = 0 :: else -> break od :: else fi;
       sortWires() }
#if REPLAYS > 0
  :: d_step { heard.contender != 0 -> heard.contender = 0; heard.left = 0; heard.token = 0 } /* keeps another one */
  :: d_step { heard.contender != 0 && replays > 0 && inbox[0].contender == 0 -> replay(0, 0) }
  :: d_step { heard.contender != 0 && replays > 0 && inbox[1].contender == 0 -> replay(1, 0) }
  :: d_step { heard.contender != 0 && replays > 0 && inbox[0].contender == 0 -> replay(0, 1) }
  :: d_step { heard.contender != 0 && replays > 0 && inbox[1].contender == 0 -> replay(1, 1) }
#endif
  od
}

init {
  atomic {
    READ_NUMBERS
    crashes = CRASHES; lostCommands = LOST_COMMANDS; lostReplies = LOST_REPLIES; lostMessages = LOST_MESSAGES;
    doubled = DOUBLED; giveUps = GIVE_UPS; replays = REPLAYS;
    for (x : 0 .. INSTANCES - 1) { callers[x] = CALLERS1; run Instance(x) }
    callers[0] = CALLERS0;
#if WIRES0 == 2
    for (x : 0 .. WIRES - 1) { run Wire(x) }
#endif
    run World()
  }
}
