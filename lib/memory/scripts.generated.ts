// Written by `npm run lua` from the .lua files in lib/. Change them.
/* oxlint-disable prefer-const */
import * as lua from './lua.js';
import type { MemoryRedis } from './memory-redis.js';

type Value = lua.Value;

let redis: MemoryRedis;

// redis/lua/include/clock.lua
let clock: Value;
let now: Value;
function beginClock(): void {
  clock = redis.time();
  now = clock[0] * 1000 + (clock[1] - (clock[1] % 1000)) / 1000;
}

// redis/lua/include/fence.lua
function mintToken(fenceKey?: Value): Value {
  let half: Value = lua.tried(() => redis.incrby(fenceKey, '2'));
  if (typeof half === 'object') {
    if (/integer/.test(half.err) || /overflow/.test(half.err)) {
      redis.llen(fenceKey);
    }
    half = redis.incrby(fenceKey, '2');
  }
  if (half > 281474976710655) {
    redis.llen(fenceKey);
  }
  const floor = (now - 1577836800000) * 100;
  if (half < floor) {
    half = Number(half === 2 ? floor + 100 + 2 * Math.floor((clock[1] % 1000) / 20) : floor) + 1;
    redis.set(fenceKey, lua.formatInteger(half));
  } else if (half % 2 === 0) {
    half = Number(half) + 1;
    redis.set(fenceKey, lua.formatInteger(half));
  }
  const token = (half - 1) * 32;
  return token;
}

// redis/lua/include/take.lua
function takeLock(
  lockKey?: Value,
  fenceKey?: Value,
  owner?: Value,
  mode?: Value,
  leaseMs?: Value,
  about?: Value,
): Value {
  const token = mintToken(fenceKey);
  const text = lua.formatInteger(token);
  if (mode === 'exclusive') {
    redis.set(lockKey, `${owner} ${text} ${about}`, 'PX', leaseMs);
  } else {
    redis.pexpire(lockKey, leaseMs);
    redis.hset(lockKey, 'mode', mode, 'owner', owner, 'token', text, 'about', about);
    redis.pexpire(lockKey, leaseMs);
  }
  return token;
}

// redis/lua/include/holder.lua
function readHolder(lockKey?: Value, text?: Value): Value {
  text = lua.is(text) ? text : lua.tried(() => redis.get(lockKey));
  if (!lua.is(text)) {
    return [undefined];
  }
  if (typeof text === 'string') {
    const [owner, token, lease, label]: Value = lua.captures(text, /^(\S+) (\d+) (\d+)(.*)$/s);
    if (label === '') {
      return [owner, token, 'exclusive', lease];
    }
    if (label !== undefined && label.slice(0, 2) === ' {') {
      return [owner, token, 'exclusive', `${lease}${label}`];
    }
    return [false];
  }
  if (!text.err.includes('WRONGTYPE')) {
    return [redis.get(lockKey)];
  }
  const fields: Value = lua.tried(() =>
    redis.hmget(lockKey, 'mode', 'used', 'soonest', 'total', 'resized', 'owner', 'token', 'about', 'depth'),
  );
  if (lua.is(fields.err) && fields.err.includes('WRONGTYPE')) {
    return [false];
  }
  if (lua.is(fields.err)) {
    return [redis.hmget(lockKey, 'mode')];
  }
  if (fields[5] !== undefined && fields[0] !== 'read' && fields[0] !== 'semaphore') {
    const token: Value = fields[6] ?? '';
    const about: Value = lua.match(fields[7] ?? '', /^\d.*$/s);
    return [
      fields[5],
      /^\d+$/.test(token) && token !== undefined ? token : false,
      fields[0] ?? 'reentrant',
      about ?? '',
      fields[8],
    ];
  }
  const isShared = fields[0] === 'read' || (fields[0] === 'semaphore' && /^\d+$/.test(fields[3] ?? ''));
  if (isShared && /^-?\d+$/.test(fields[1] ?? '') && /^\d+$/.test(fields[2] ?? '') && fields[2].length <= 16) {
    return ['', undefined, fields[0], fields];
  }
  return [false];
}

// redis/lua/include/members.lua
function readMembers(lockKey?: Value, fields?: Value): Value {
  fields = lua.is(fields) ? fields : redis.hmget(lockKey, 'mode', 'used', 'soonest', 'total', 'resized');
  if (fields[0] === undefined) {
    return undefined;
  }
  const lock: Value = {
    mode: fields[0],
    used: lua.number(fields[1]),
    soonest: lua.number(fields[2]),
    total: lua.number(fields[3]),
    resized: fields[4] === '1',
  };
  if (lock.soonest > now) {
    return lock;
  }
  const sweep: Value = redis.hget(lockKey, 'sweep');
  let [from, seen]: Value = lua.captures(sweep ?? '0 9000000000000000', /^(\d+) (\d+)$/);
  if (from === undefined || from.length > 15) {
    from = '0';
    seen = '9000000000000000';
  }
  const page: Value = redis.hscan(lockKey, from, 'COUNT', 100);
  const cursor: Value = page[0];
  const entries: Value = page[1];
  const gone: Value = [];
  let used: Value = 0;
  let freed: Value = 0;
  seen = lua.number(seen);
  for (let index = 1; index <= entries.length; index += 2) {
    let [permits, expiry]: Value = lua.captures(entries[index], /^(\d+) \d+ (\d+)/);
    if (permits !== undefined && expiry.length > 15) {
      permits = undefined;
    }
    if (permits !== undefined && lua.number(expiry) <= now) {
      gone.push(entries[index - 1]);
      freed = freed + Number(permits);
    } else if (permits !== undefined) {
      used = used + Number(permits);
      seen = Math.min(seen, lua.number(expiry));
    }
  }
  if (gone.length > 0) {
    redis.hdel(lockKey, ...gone);
  }
  lock.used = from === '0' && cursor === '0' ? used : lock.used - freed;
  let written: Value;
  if (cursor !== '0') {
    [lock.sweep, lock.seen] = [cursor, seen];
    written = lua.tried(() => redis.hset(lockKey, 'used', lock.used, 'sweep', `${cursor} ${lua.formatInteger(seen)}`));
  } else if (seen === 9000000000000000 && lock.used <= 0) {
    redis.del(lockKey);
    return undefined;
  } else if (seen === 9000000000000000) {
    [lock.sweep, lock.seen] = [cursor, seen];
    written = lua.tried(() => redis.hset(lockKey, 'used', lock.used, 'sweep', '0 9000000000000000'));
  } else {
    lock.soonest = seen;
    if (sweep !== undefined) {
      redis.hdel(lockKey, 'sweep');
    }
    written = lua.tried(() => redis.hset(lockKey, 'used', lock.used, 'soonest', lua.formatInteger(seen)));
  }
  lock.isPartial = cursor !== '0' && typeof written === 'number';
  return lock;
}
function keepAlive(lockKey?: Value, leaseMs?: Value): Value {
  const ttl = Math.max(lua.number(leaseMs), redis.pttl(lockKey));
  redis.pexpire(lockKey, lua.formatInteger(ttl));
}
function addMember(
  lockKey?: Value,
  lock?: Value,
  owner?: Value,
  request?: Value,
  token?: Value,
  leaseMs?: Value,
): Value {
  const expiry = now + Number(leaseMs);
  const isNew = !lua.is(lock) || lock.used === 0;
  const isDecided: Value = !isNew && lua.is(request.resized) ? !lua.is(lock.resized) : undefined;
  lock = lua.is(lock) ? lock : { mode: request.mode, used: 0, total: request.total, resized: request.resized };
  if (lua.is(request.resized) && !lua.is(lock.resized)) {
    [lock.total, lock.resized] = [request.total, true];
  }
  if (lua.is(lock.sweep)) {
    lock.used = lock.used - (lua.match(redis.hget(lockKey, owner) ?? '', /^(\d+) /) ?? 0);
    lock.seen = Math.min(lock.seen, expiry);
  }
  lock.used = Number(lock.used) + Number(request.count);
  lock.soonest = isNew ? expiry : Math.min(lock.soonest, expiry);
  const soonest = lua.formatInteger(lock.soonest);
  const entry = `${request.count} ${token} ${lua.formatInteger(expiry)} ${request.about}`;
  if (isNew) {
    redis.pexpire(lockKey, leaseMs);
  } else {
    keepAlive(lockKey, leaseMs);
  }
  if (!lua.is(lock.total)) {
    redis.hset(lockKey, 'mode', lock.mode, 'used', lock.used, 'soonest', soonest, owner, entry);
  } else if (isNew || lua.is(isDecided)) {
    redis.hset(
      lockKey,
      'mode',
      lock.mode,
      'used',
      lock.used,
      'soonest',
      soonest,
      owner,
      entry,
      'total',
      lock.total,
      'resized',
      lua.is(lock.resized) ? 1 : 0,
    );
  } else {
    redis.hset(lockKey, 'used', lock.used, 'soonest', soonest, owner, entry);
  }
  if (isNew) {
    redis.pexpire(lockKey, leaseMs);
  }
  if (lua.is(lock.sweep)) {
    redis.hset(lockKey, 'sweep', `${lock.sweep} ${lua.formatInteger(lock.seen)}`);
  }
  return lock;
}
function removeMember(lockKey?: Value, owner?: Value, fields?: Value): Value {
  const lock: Value = readMembers(lockKey, fields);
  const [permits, expiry]: Value = lua.captures(
    (lock !== undefined ? redis.hget(lockKey, owner) : undefined) ?? '',
    /^(\d+) \d+ (\d+)/,
  );
  if (permits === undefined) {
    return [0, lock];
  }
  const wasHeld: Value = lua.number(expiry) > now ? 1 : 0;
  lock.used = lock.used - permits;
  if (lock.used > 0) {
    redis.hdel(lockKey, owner);
    redis.hset(lockKey, 'used', lock.used);
    return [wasHeld, lock];
  }
  redis.del(lockKey);
  lock.sweep = undefined;
  lock.isPartial = undefined;
  return [wasHeld, lua.is(lock.total) && lock !== undefined ? lock : undefined];
}

// redis/lua/include/admission.lua
function parseRequest(text?: Value, about?: Value, label?: Value): Value {
  if (lua.is(label)) {
    about = `${about} ${label}`;
  }
  if (text.slice(0, 10) !== 'semaphore:') {
    return { mode: text, count: 1, about };
  }
  const [count, total, resized]: Value = lua.captures(text, /:(\d+):(\d+):(\d)$/);
  return { mode: 'semaphore', count: lua.number(count), total: lua.number(total), resized: resized === '1', about };
}
function totalFor(lock?: Value, request?: Value): Value {
  if (lua.is(request.resized) && !lua.is(lock.resized)) {
    return request.total;
  }
  return lock.total;
}
function isMismatch(lock?: Value, request?: Value): Value {
  if ((lock.mode === 'semaphore') !== (request.mode === 'semaphore')) {
    return true;
  }
  if (lock.mode !== 'semaphore') {
    return false;
  }
  if (lock.total !== request.total && !lua.is(lock.resized) && !lua.is(request.resized)) {
    return true;
  }
  return request.count > totalFor(lock, request);
}
function admits(lock?: Value, request?: Value): Value {
  if (!lua.is(lock)) {
    return true;
  }
  if (lock.mode === 'read') {
    return request.mode === 'read';
  }
  return lock.mode === 'semaphore' && Number(lock.used) + Number(request.count) <= totalFor(lock, request);
}

// redis/lua/include/queue.lua
let PLACE: Value;
let budget: Value;
let isCut: Value;
let isStrange: Value;
let isWatched: Value;
let isPassedOn: Value;
let isNotified: Value;
function beginQueue(): void {
  PLACE = /^ (\d+) (\S+) (\d+) (\d+) (\d.*)$/s;
  budget = 100;
  isCut = false;
  isStrange = false;
  isWatched = false;
  isPassedOn = false;
  isNotified = false;
}
function findPlace(queueKey?: Value, owner?: Value): Value {
  return redis.zscore(queueKey, owner);
}
function leaveQueue(queueKey?: Value, number?: Value, owner?: Value, data?: Value): Value {
  data = lua.is(data) ? data : redis.zrange(queueKey, number, number, 'BYSCORE')[0];
  redis.zrem(queueKey, owner, data, `#${number}`);
}
function firstWaiter(queueKey?: Value): Value {
  let head: Value = redis.zrange(queueKey, '0', '1');
  while (head[0] !== undefined) {
    let [number, mode, expiry, sentAt, about]: Value = lua.captures(head[0], PLACE);
    if (number === undefined) {
      if (head[0].slice(0, 1) === '!') {
        isWatched = true;
        return [undefined];
      }
    } else if (lua.number(expiry) > now) {
      return [head[1] ?? ' ', number, mode, expiry - now, sentAt, head[0], about];
    }
    if (budget <= 0) {
      isCut = true;
      return [''];
    }
    const isDead: Value = number !== undefined ? true : undefined;
    const places: Value = redis.zrange(queueKey, 0, 2 * budget - 1);
    const gone: Value = [];
    let index: Value = 1;
    while (places[index - 1] !== undefined) {
      [number, mode, expiry] = lua.captures(places[index - 1], PLACE);
      if (lua.is(isDead) && (number === undefined || lua.number(expiry) > now)) {
        break;
      }
      gone.push(places[index - 1]);
      if (lua.is(isDead)) {
        gone.push(`#${number}`);
        if ((places[index] ?? ' ').slice(0, 1) !== ' ') {
          index = index + 1;
          gone.push(places[index - 1]);
        }
      } else if (number !== undefined || /^!.+\//s.test(places[index - 1])) {
        gone.pop();
        isStrange = false;
        break;
      } else if (!/^#\d+$/.test(places[index - 1])) {
        isStrange = true;
      }
      [index, budget] = [index + 1, budget - 1];
    }
    if (isStrange) {
      return [undefined];
    }
    redis.zrem(queueKey, ...gone);
    head = redis.zrange(queueKey, '0', '1');
  }
  return [];
}

// redis/lua/include/granting.lua
function take(lockKey?: Value, fenceKey?: Value, lock?: Value, owner?: Value, request?: Value, leaseMs?: Value): Value {
  if (request.mode !== 'read' && request.mode !== 'semaphore') {
    return [takeLock(lockKey, fenceKey, owner, request.mode, leaseMs, request.about)];
  }
  const token = mintToken(fenceKey);
  return [token, addMember(lockKey, lock, owner, request, lua.formatInteger(token), leaseMs)];
}
function giveBack(lockKey?: Value, owner?: Value, isShared?: Value, fields?: Value): Value {
  if (lua.is(isShared)) {
    return removeMember(lockKey, owner, fields);
  }
  return [redis.del(lockKey), undefined];
}
function grantWaiting(lockKey?: Value, queueKey?: Value, fenceKey?: Value, lock?: Value, own?: Value): Value {
  if (!lua.is(fenceKey)) {
    const ends = 0;
    const behind = 0;
    lua.attempt(() => firstWaiter(queueKey));
    const places: Value = lua.tried(() => redis.zrange(queueKey, 0, 15));
    let heard: Value = 0;
    let unheard: Value = 0;
    for (let index = 1; index <= places.length; index++) {
      const [position, , lasts, sentAt]: Value = lua.captures(places[index - 1], PLACE);
      const waiter: Value = places[index];
      if (position !== undefined && lua.number(lasts) > now && waiter !== undefined && /^[^ ].*\//s.test(waiter)) {
        if (lua.number(position) <= lua.number(behind)) {
          heard = heard + 1;
        } else {
          const prefix: Value = lua.match(lockKey, /^(.*)\{[^{}]*\}$/s);
          const left = lua.formatInteger(ends + 1000 * heard + 250 * unheard);
          const said = `kept ${left} ${sentAt}`;
          const receivers: Value = lua.tried(() =>
            redis.publish(
              `${prefix}inbox:${lua.match(waiter, /^(.*)\//s)}`,
              `${redis.sha1hex(`${said} ${waiter}`)} ${said} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`,
            ),
          );
          if (receivers === 0) {
            unheard = unheard + 1;
          } else {
            heard = heard + 1;
          }
        }
        if (heard >= 4) {
          break;
        }
      }
    }
    return [lock];
  }
  const [prefix, inCluster]: Value = lua.replaced(fenceKey.slice(0, -5), /\{[^{}]*\}:$/, '');
  let owner: Value;
  while (true) {
    let number: Value;
    let mode: Value;
    let leaseMs: Value;
    let sentAt: Value;
    let data: Value;
    let about: Value;
    [owner, number, mode, leaseMs, sentAt, data, about] = firstWaiter(queueKey);
    if (!lua.is(number) || owner === own) {
      if (isWatched && !isPassedOn && (!lua.is(lock) || lock.used === 0)) {
        const watchers: Value = redis.zrange(queueKey, 0, 99, 'WITHSCORES');
        const told: Value = [];
        for (let index = 1; index <= watchers.length; index += 2) {
          const score: Value = lua.number(watchers[index]);
          const watcher = watchers[index - 1].slice(1);
          const client: Value = lua.match(watcher, /^(.*)\//s);
          if (watchers[index - 1].slice(0, 1) === '!') {
            told.push(watchers[index - 1]);
          } else {
            isCut = true;
          }
          if (client !== undefined && score > now * 1000) {
            const mark = lua.formatInteger(score % 1000);
            lua.tried(() =>
              redis.publish(
                `${prefix}inbox:${client}`,
                `free ${redis.sha1hex(`${mark} ${watcher}`)} ${mark} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`,
              ),
            );
          }
        }
        redis.zrem(queueKey, ...told);
        if (told.length === 100) {
          isCut = true;
        }
        isWatched = false;
      }
      break;
    }
    const request: Value = parseRequest(mode, about);
    const client: Value = lua.match(owner, /^([^ ].*)\//s);
    const isPlace: Value =
      client !== undefined && leaseMs < 1000000000000000
        ? mode === 'exclusive' ||
          mode === 'read' ||
          mode === 'write' ||
          mode === 'reentrant' ||
          ((lua.is(request.count) ? request.count : 0) > 0 && lua.is(request.total)
            ? request.count <= request.total
            : undefined)
        : undefined;
    const isMisfit: Value = lua.is(isPlace) && lua.is(lock) ? isMismatch(lock, request) : undefined;
    const isBlocked: Value = lua.is(isPlace) && !lua.is(isMisfit) ? !admits(lock, request) : undefined;
    if (lua.is(isBlocked) || budget <= 0) {
      isCut = lua.is(lua.is(isCut) ? isCut : !lua.is(isBlocked))
        ? lua.is(isCut)
          ? isCut
          : !lua.is(isBlocked)
        : lock.isPartial;
      break;
    }
    leaveQueue(queueKey, number, lua.is(isPlace) && owner !== undefined ? owner : '', data);
    budget = budget - 3;
    let isDeaf: Value = !lua.is(isPlace);
    const channel: Value = lua.is(isPlace) ? `${prefix}inbox:${client}` : isPlace;
    if (lua.is(isPlace) && inCluster === 0) {
      const listeners: Value = lua.tried(() => redis.pubsub('NUMSUB', channel));
      if (lua.is(listeners.err) || listeners[1] === 0) {
        const receivers: Value = lua.tried(() => redis.publish(channel, ''));
        isDeaf = typeof receivers === 'number' && (receivers === 0 || !lua.is(listeners.err));
      }
    }
    if (!lua.is(isMisfit) && !isDeaf) {
      budget = budget - 3;
      const [token, shared]: Value = take(lockKey, fenceKey, lock, owner, request, lua.formatInteger(leaseMs));
      const tokenText = lua.formatInteger(token);
      const terms = `${tokenText} ${sentAt}`;
      lua.tried(() =>
        redis.publish(channel, `${redis.sha1hex(`${terms} ${owner}`)} ${terms} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`),
      );
      if (!lua.is(shared)) {
        return [{ owner, token, mode, about }];
      }
      lock = shared;
    }
  }
  if (lua.is(isCut) && !isNotified) {
    isNotified = true;
    for (const mark of redis.zrange(queueKey, '(100000000000000', `(${now}`, 'BYSCORE', 'REV', 'LIMIT', 0, 3)) {
      const number: Value = lua.match(mark, /^#(\d+)$/);
      const left = 0;
      const members: Value = number !== undefined ? redis.zrange(queueKey, number, number, 'BYSCORE') : [];
      const waiter: Value = members[1];
      const [, , , sentAt]: Value = lua.captures(members[0] ?? '', PLACE);
      if (sentAt !== undefined && waiter !== undefined && waiter !== own && waiter.includes('/')) {
        const said = `kept ${left} ${sentAt}`;
        const receivers: Value = lua.tried(() =>
          redis.publish(
            `${prefix}inbox:${lua.match(waiter, /^(.*)\//s)}`,
            `${redis.sha1hex(`${said} ${waiter}`)} ${said} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`,
          ),
        );
        if (typeof receivers === 'number' && receivers > 0) {
          break;
        }
      }
    }
  }
  return [lock, owner];
}

// redis/lua/include/lease.lua
function holderTtl(lockKey?: Value): Value {
  const ttl = redis.pttl(lockKey);
  return ttl < 0 ? 1000 : ttl;
}

// redis/lua/include/holder-renewal.lua
function writeHolder(lockKey?: Value, holder?: Value): Value {
  if (holder.mode === 'exclusive') {
    redis.set(lockKey, `${holder.owner} ${holder.token} ${holder.about}`, 'KEEPTTL');
  } else {
    redis.hset(
      lockKey,
      'owner',
      holder.owner,
      'token',
      lua.is(holder.token) ? holder.token : '',
      'about',
      holder.about,
      'depth',
      lua.is(holder.depth) ? holder.depth : 1,
    );
  }
}
function renewHolder(lockKey?: Value, holder?: Value, leaseMs?: Value, exactly?: Value): Value {
  const ttl = redis.pttl(lockKey);
  const lasts = lua.formatInteger(lua.is(exactly) && lua.is(leaseMs) ? leaseMs : Math.max(leaseMs, ttl));
  redis.pexpire(lockKey, lasts);
  const [lease, label]: Value = lua.captures(holder.about, /^(\d*)(.*)$/s);
  if (lease !== lasts) {
    holder.about = `${lasts}${label}`;
    writeHolder(lockKey, holder);
  }
  return ttl;
}

// redis/lua/include/any-lock.lua
function readLock(lockKey?: Value): Value {
  const [owner, token, mode, about, depth]: Value = readHolder(lockKey);
  if (owner === undefined) {
    return undefined;
  }
  if (!lua.is(owner)) {
    redis.llen(lockKey);
    return redis.get(lockKey);
  }
  if (owner !== '') {
    return { owner, token, mode, about, depth };
  }
  return readMembers(lockKey, about);
}

// redis/lua/include/member.lua
function findMember(lockKey?: Value, owner?: Value): Value {
  const entry: Value = redis.hget(lockKey, owner);
  if (entry === undefined) {
    return [undefined];
  }
  const [permits, token, expiry, about]: Value = lua.captures(entry, /^(\d+) (\d+) (\d+) (\d.*)$/s);
  if (permits === undefined || lua.number(expiry) <= now || expiry.length > 15) {
    return [undefined];
  }
  return [permits, token, lua.number(expiry), about];
}

// redis/lua/include/renewal.lua
function renewMember(lockKey?: Value, owner?: Value, leaseMs?: Value, exactly?: Value): Value {
  let [permits, token, expiry, about]: Value = findMember(lockKey, owner);
  if (permits === undefined) {
    return undefined;
  }
  const renewed = now + Number(leaseMs);
  keepAlive(lockKey, leaseMs);
  const lasts = lua.formatInteger(lua.is(exactly) ? renewed : Math.max(renewed, expiry));
  about = `${lua.formatInteger(lasts - now)}${lua.match(about, /^\d+(.*)$/s)}`;
  redis.hset(lockKey, owner, `${permits} ${token} ${lasts} ${about}`);
  if (lua.is(exactly) && renewed < expiry) {
    const bounds: Value = redis.hmget(lockKey, 'soonest', 'sweep');
    if (renewed < lua.number(bounds[0])) {
      redis.hset(lockKey, 'soonest', lasts);
    }
    const [cursor, seen]: Value = lua.captures(bounds[1] ?? '', /^(\d+) (\d+)$/);
    if (cursor !== undefined && renewed < lua.number(seen)) {
      redis.hset(lockKey, 'sweep', `${cursor} ${lasts}`);
    }
  }
  return token;
}

// redis/lua/include/resizing.lua
function resize(lockKey?: Value, lock?: Value, total?: Value): Value {
  [lock.total, lock.resized] = [total, true];
  redis.hset(lockKey, 'total', total, 'resized', 1);
}

// redis/lua/include/joining.lua
function joinQueue(
  queueKey?: Value,
  number?: Value,
  owner?: Value,
  mode?: Value,
  leaseMs?: Value,
  sentAt?: Value,
  maxWaiters?: Value,
  about?: Value,
): Value {
  const expiry = now + Number(leaseMs);
  let ttl: Value;
  let before: Value;
  let soonest: Value;
  const place = ` ${mode} ${expiry} ${sentAt} ${about}`;
  if (lua.is(number)) {
    ttl = redis.pttl(queueKey);
    const data: Value = redis.zrange(queueKey, number, number, 'BYSCORE')[0];
    const rewritten = ` ${number}${place}`;
    redis.zadd(queueKey, expiry, `#${number}`, number, rewritten);
    if (data !== owner && data !== rewritten) {
      redis.zrem(queueKey, data);
    }
    before = lua.is(before) ? before : redis.zcount(queueKey, '-inf', `(${number}`) / 2;
  } else {
    let length: Value = redis.zcard(queueKey) / 3;
    let last: Value = 0;
    let edge: Value;
    soonest = expiry;
    if (length > 0) {
      edge = redis.zrange(queueKey, Math.floor(2 * length - 1), Math.floor(2 * length), 'WITHSCORES');
      if (length % 1 > 0 || edge[0].slice(0, 1) === '#' || edge[2].slice(0, 1) !== '#') {
        length = redis.zcount(queueKey, '-inf', '(100000000000000') / 3;
        edge = redis.zrange(queueKey, Math.floor(2 * length - 1), Math.floor(2 * length), 'WITHSCORES');
        if (length % 1 > 0 || (length > 0 && edge[2].slice(0, 1) !== '#')) {
          const members: Value = redis.zrange(queueKey, 0, 599);
          const kept: Value = {};
          const gone: Value = [];
          let open: Value;
          for (const member of members) {
            if (PLACE.test(member)) {
              open = member;
            } else if (open !== undefined && /^[^ #!].*\//s.test(member)) {
              kept[open] = true;
              kept[member] = true;
              kept[`#${lua.match(open, PLACE)}`] = true;
              open = undefined;
            }
          }
          for (const member of members) {
            if (!lua.is(kept[member]) && member.slice(0, 1) !== '!') {
              gone.push(member);
            }
          }
          if (Object.keys(kept)[0] !== undefined && gone.length > 0) {
            redis.zrem(queueKey, ...gone);
          }
          length = redis.zcount(queueKey, '-inf', '(100000000000000') / 3;
          edge = redis.zrange(queueKey, Math.floor(2 * length - 1), Math.floor(2 * length), 'WITHSCORES');
          if (length % 1 > 0 || (length > 0 && edge[2].slice(0, 1) !== '#')) {
            return [redis.llen(queueKey)];
          }
        }
      }
    }
    if (length > 0) {
      if (length >= maxWaiters && redis.zcount(queueKey, `(${now}`, '(100000000000000') >= maxWaiters) {
        return [false];
      }
      [last, soonest] = [edge[1], Math.min(lua.number(edge[3]), expiry)];
      if (soonest <= now) {
        const due: Value = redis.zrange(queueKey, 2 * length, 2 * length + 15, 'WITHSCORES');
        const gone: Value = [];
        for (let index = 1; index <= due.length; index += 2) {
          if (lua.number(due[index]) > now) {
            break;
          }
          const dead = due[index - 1].slice(1);
          const members: Value = redis.zrange(queueKey, dead, dead, 'BYSCORE');
          gone.push(due[index - 1], members[0], members[1]);
        }
        redis.zrem(queueKey, ...gone);
        length = length - gone.length / 3;
      }
    }
    ttl = redis.pttl(queueKey);
    if (ttl < 0) {
      redis.pexpire(queueKey, leaseMs);
    }
    [number, before] = [Number(last) + 1, length];
    redis.zadd(queueKey, number, owner, number, ` ${number}${place}`, expiry, `#${number}`);
  }
  if (ttl < lua.number(leaseMs)) {
    redis.pexpire(queueKey, leaseMs);
  }
  if (soonest === undefined || soonest <= now) {
    soonest = redis.zrange(queueKey, `(${now}`, '(100000000000000', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES');
    soonest = lua.number(soonest[1] ?? expiry);
  }
  return [Number(before) + 1, soonest - now];
}

// redis/lua/include/acquiring.lua
function acquireLock(
  lockKey?: Value,
  queueKey?: Value,
  fenceKey?: Value,
  owner?: Value,
  mode?: Value,
  leaseMs?: Value,
  sentAt?: Value,
  maxWaiters?: Value,
  label?: Value,
  newestKey?: Value,
  newest?: Value,
  isKnown?: Value,
  known?: Value,
): Value {
  let number: Value = findPlace(queueKey, owner);
  let lock: Value = known;
  let first: Value;
  let held: Value;
  if (!lua.is(isKnown)) {
    lock = readLock(lockKey);
  }
  if (lua.is(lock) && lock.used === 0) {
    lock = undefined;
  }
  if (lua.is(lock) && lua.is(lock.used)) {
    held = renewMember(lockKey, owner, leaseMs);
  } else if (lua.is(lock) && lock.owner === owner) {
    renewHolder(lockKey, lock, leaseMs);
    held = lock.token;
  }
  if (lua.is(held)) {
    if (number !== undefined) {
      leaveQueue(queueKey, number, owner);
    }
    return [lua.number(held)];
  }
  let began: Value;
  let keepMs: Value;
  if (lua.is(newest) && number === undefined) {
    const [newerBegan, newer]: Value = lua.captures(redis.get(newestKey) ?? '', /^(\d+) (.+)$/s);
    const [age, keep]: Value = lua.captures(newest, /^(\d+) (\d+)$/);
    [began, keepMs] = [now - age, keep];
    if (newer !== undefined && newer !== owner && lua.number(newerBegan) > began && lua.number(newerBegan) <= now) {
      return [['full', 0, '', lua.match(newer, /^[^/]*/)]];
    }
  }
  const request: Value = parseRequest(mode, leaseMs, label);
  if (!lua.is(lock) || lua.is(lock.used)) {
    [lock, first] = grantWaiting(lockKey, queueKey, fenceKey, lock, owner);
    if (isStrange) {
      redis.llen(queueKey);
    }
    if (number !== undefined) {
      number = findPlace(queueKey, owner);
    }
  }
  const isMisfit: Value = lua.is(lock) ? isMismatch(lock, request) : lock;
  if (!lua.is(isMisfit) && (!lua.is(first) || first === owner) && admits(lock, request)) {
    if (number !== undefined) {
      leaveQueue(queueKey, number, owner);
    }
    if (began !== undefined) {
      redis.set(newestKey, `${lua.formatInteger(began)} ${owner}`, 'PX', keepMs);
    }
    return take(lockKey, fenceKey, lock, owner, request, leaseMs);
  }
  let ttl: Value = 1;
  if (lua.is(lock) && !lua.is(isCut) && !lua.is(lock.isPartial)) {
    ttl = lock.mode === 'semaphore' ? Math.max(1, lock.soonest - now) : holderTtl(lockKey);
  }
  if (lua.is(isMisfit)) {
    if (number !== undefined) {
      leaveQueue(queueKey, number, owner);
    }
    return [['mismatch', ttl, lock.mode, lua.is(lock.total) ? lock.total : 1]];
  }
  let seen: Value = '';
  if (lua.is(lock) && lua.is(lock.owner)) {
    const client: Value = lua.match(lock.owner, /^(\S+)\//);
    if (client !== undefined) {
      const standing: Value =
        typeof lock.token === 'string'
          ? lock.token.slice(0, 20)
          : lua.formatInteger(lua.is(lock.token) ? lock.token : 0);
      seen = `${lua.cut(lock.mode, 9)} 1 ${lua.formatInteger(now)}\n${client.slice(0, 200)} ${lua.is(lock.depth) ? lock.depth.slice(0, 7) : 1} ${standing} ${lua.formatInteger(now + Number(ttl))} ${lock.about.length < 17 && lua.is(lock.about) ? lock.about : lua.match(lock.about.slice(0, 320), /^[^\n]*/)}`;
    }
  } else if (lua.is(lock) && !lua.is(isCut)) {
    const named: Value = [];
    const fields: Value = lua.tried(() => redis.hrandfield(lockKey, 14, 'WITHVALUES'));
    for (let index = 1; index <= fields.length; index += 2) {
      const client: Value = lua.match(fields[index - 1], /^(\S+)\//);
      if (client !== undefined) {
        named.push(`${client.slice(0, 200)} ${lua.match(fields[index].slice(0, 360), /^[^\n]*/)}`);
      }
    }
    let count: Value = named.length;
    if (fields.length === 28) {
      count = lua.firstTruthy(
        lua.is(lock.total) ? redis.hlen(lockKey) - (lua.is(lock.sweep) ? 6 : 5) : lock.used,
        count,
      );
    }
    if (named[0] !== undefined) {
      seen = `${lock.mode.slice(0, 9)} ${count} ${now}\n${named.join('\n')}`;
    }
  }
  if (sentAt === '') {
    return [['busy', ttl, seen, lua.is(isCut) || (lua.is(lock) && lua.is(lock.isPartial)) ? 1 : undefined]];
  }
  if (number === undefined && lua.number(maxWaiters) === 0) {
    return [['full', ttl, seen]];
  }
  let [place, soonestMs]: Value = joinQueue(
    queueKey,
    number,
    owner,
    mode,
    leaseMs,
    sentAt,
    lua.number(maxWaiters),
    request.about,
  );
  if (!lua.is(place)) {
    return [['full', ttl, seen]];
  }
  if (began !== undefined) {
    redis.set(newestKey, `${lua.formatInteger(began)} ${owner}`, 'PX', keepMs);
  }
  if (lua.is(lock) && lock.mode === 'read') {
    soonestMs = Math.max(1, Math.min(soonestMs, lock.soonest - now));
  }
  if (lua.is(request.resized) && lua.is(lock) && lua.is(lock.used) && !lua.is(lock.resized)) {
    resize(lockKey, lock, request.total);
    grantWaiting(lockKey, queueKey, fenceKey, lock);
  }
  let told: Value;
  if (owner.slice(-1) === '!') {
    const older: Value = place > 1 ? redis.zrange(queueKey, 0, Math.min(2 * place, 202) - 3) : [];
    older.push(lua.is(lock) ? lock.owner : lock);
    const said = `superseded ${lua.match(owner, /^[^/]*/)}`;
    const prefix: Value = lua.match(lockKey, /^(.*)\{[^{}]*\}$/s);
    for (let index = 1; index <= older.length; index++) {
      const other: Value = older[index - 1];
      const client: Value = lua.match(other, /^([^ #!].*)\/[^/]*~!?$/s);
      if (client !== undefined) {
        const receivers: Value = lua.tried(() =>
          redis.publish(
            `${prefix}inbox:${client}`,
            `${redis.sha1hex(`${said} ${other}`)} ${said} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`,
          ),
        );
        if (lua.is(lock) && other === lock.owner && typeof receivers === 'number') {
          told = 1;
        }
      }
    }
  }
  return [['queued', ttl, seen, place, soonestMs, told]];
}

// features/jobs/redis/lua/include/claim-text.lua
function readClaim(claim?: Value): Value {
  const [claimant, state]: Value = lua.captures(lua.is(claim) ? claim : '', /^(\S*) ?(\S*)$/);
  const [plain, attempt]: Value = lua.captures(claimant ?? '', /^(.*)~(\d\d?\d?)$/s);
  return [plain ?? claimant, state, lua.number(attempt) ?? (state === 'reruns' ? 2 : 1)];
}
function writeClaim(claimant?: Value, attempt?: Value): Value {
  if (attempt > 1) {
    return `${claimant}${attempt > 2 ? `~${attempt}` : ''} reruns`;
  }
  return claimant === 'returned' && lua.is(claimant) ? claimant : `${claimant} runs`;
}

// features/jobs/redis/lua/include/tick-due.lua
function judgeTick(lastKey?: Value, at?: Value, earlyMs?: Value, lateMs?: Value): Value {
  at = lua.number(at);
  if (at > now + Number(earlyMs)) {
    return ['early', now - at];
  }
  const last = lua.number(redis.get(lastKey) ?? '') ?? 0;
  if (at < now - lateMs || (at <= last && last <= now + Number(earlyMs))) {
    return ['late', now - at];
  }
  return [];
}
function noteTick(lastKey?: Value, at?: Value, earlyMs?: Value, keepMs?: Value): Value {
  const last = lua.number(redis.get(lastKey) ?? '') ?? 0;
  if (lua.number(at) > last || last > now + Number(earlyMs)) {
    redis.set(lastKey, at, 'PX', keepMs);
  }
}

// features/jobs/redis/lua/include/job-record.lua
function readRecord(recordKey?: Value): Value {
  let fields: Value = lua.tried(() =>
    redis.hmget(
      recordKey,
      'schedule',
      'owed',
      'span',
      'pause',
      'missed',
      'next',
      'told',
      'since',
      'stated',
      'down',
      'by',
      'other',
    ),
  );
  if (lua.is(fields.err)) {
    fields = [];
  }
  return {
    schedule: fields[0],
    owed: fields[1],
    span: fields[2],
    pause: fields[3],
    missed: fields[4],
    next: fields[5],
    told: fields[6],
    since: fields[7],
    stated: fields[8],
    down: fields[9],
    by: fields[10] ?? '-',
    other: fields[11],
  };
}
function keepFor(recordKey?: Value, next?: Value, keepMs?: Value): Value {
  const ahead = Math.max(0, (lua.number(next) ?? 0) - now);
  return lua.formatInteger(Math.max(redis.pttl(recordKey), ahead + Number(keepMs)));
}
function keepJob(recordKey?: Value, runsKey?: Value, instancesKey?: Value, ttl?: Value): Value {
  lua.tried(() => redis.pexpire(recordKey, ttl));
  lua.tried(() => redis.pexpire(runsKey, ttl));
  lua.tried(() => redis.pexpire(instancesKey, ttl));
}

// features/jobs/redis/lua/include/job-instances.lua
function noteInstance(instancesKey?: Value, owner?: Value, keepMs?: Value): Value {
  const instance: Value = lua.match(owner, /^[^/]*/);
  const seen: Value = lua.tried(() => redis.zscore(instancesKey, instance));
  if (typeof seen === 'object' || (seen !== undefined && lua.number(seen) > now - 60000)) {
    return;
  }
  lua.tried(() => redis.zadd(instancesKey, now, instance));
  const oldest: Value = lua.tried(() => redis.zrange(instancesKey, 0, 0, 'WITHSCORES'));
  if (
    oldest[0] !== undefined &&
    oldest[0] !== instance &&
    (lua.number(oldest[1]) < now - keepMs || redis.zcard(instancesKey) > 1000)
  ) {
    redis.zrem(instancesKey, oldest[0]);
  }
  lua.tried(() => redis.pexpire(instancesKey, lua.formatInteger(Math.max(keepMs, redis.pttl(instancesKey)))));
}

// features/jobs/redis/lua/include/job-pause.lua
function readPause(pausedKey?: Value): Value {
  const [at, till, by]: Value = lua.captures(redis.get(pausedKey) ?? '', /^(\d+) (\d+) (.*)$/s);
  return [lua.number(at), lua.number(till), by];
}

// features/jobs/redis/lua/include/job-runs.lua
function recentRuns(runsKey?: Value): Value {
  const entries: Value = lua.tried(() => redis.lrange(runsKey, 0, 63));
  return lua.is(entries.err) ? [] : entries;
}
function addRuns(runsKey?: Value, historySize?: Value, ...rest: Value[]): Value {
  if (lua.number(historySize) < 1) {
    return lua.tried(() => redis.del(runsKey));
  }
  lua.tried(() => redis.lpush(runsKey, ...rest));
  lua.tried(() => redis.ltrim(runsKey, 0, historySize - 1));
}
function dropOpenRun(runsKey?: Value, tick?: Value, attempt?: Value): Value {
  for (const run of recentRuns(runsKey)) {
    if (run.slice(0, tick.length + 1) === `${tick} `) {
      const reruns: Value = lua.match(run, /^\S+ \d+ (r*)[-mc]* \S+ \d+$/);
      if (reruns !== undefined && reruns.length === attempt - 1) {
        lua.tried(() => redis.lrem(runsKey, 1, run));
      }
      return;
    }
  }
}

// features/jobs/redis/lua/include/job-unbegun.lua
function forgetRun(runsKey?: Value, recordKey?: Value, tick?: Value, attempt?: Value, lastMissed?: Value): Value {
  dropOpenRun(runsKey, tick, attempt);
  const record: Value = (lastMissed !== '' ? lua.tried(() => redis.hmget(recordKey, 'owed', 'span')) : undefined) ?? [];
  if (record[0] === undefined && record[1] !== undefined && lua.match(record[1], /^\d+ \d+ (\d+)/) === lastMissed) {
    lua.tried(() => redis.hset(recordKey, 'owed', lastMissed));
  }
}

// redis/lua/include/passed-on.lua
function passedOn(done?: Value): Value {
  return lua.is(isCut) ? Number(done) + 2 : done;
}

// redis/lua/include/releasing.lua
function releaseLock(lockKey?: Value, queueKey?: Value, fenceKey?: Value, owner?: Value, text?: Value): Value {
  const [holder, , , fields]: Value = readHolder(lockKey, text);
  const [isQueue, number]: Value = lua.attempt(() => [findPlace(queueKey, owner)]);
  if (isQueue && lua.is(number)) {
    leaveQueue(queueKey, number, owner);
  }
  const isOthers: Value = holder === false || (lua.is(holder) && holder !== '' ? holder !== owner : undefined);
  let released: Value = 0;
  let isKnown: Value = !lua.is(isOthers);
  let lock: Value;
  if (lua.is(holder) && isKnown) {
    [released, lock] = giveBack(lockKey, owner, holder === '', fields);
  }
  if (!isQueue) {
    return [released, isKnown, lock];
  }
  if (isKnown) {
    [isKnown, lock] = lua.attempt(() => grantWaiting(lockKey, queueKey, fenceKey, lock));
    if (!isKnown) {
      lock = undefined;
    }
  }
  const ends: Value = lua.firstTruthy(
    lua.is(number) && lua.is(holder)
      ? lua.is(isOthers)
        ? redis.pttl(lockKey)
        : lua.is(lock) && lua.is(lock.used)
          ? lock.soonest - now
          : undefined
      : undefined,
    0,
  );
  if (ends > 0) {
    const behind: Value = number;
    lua.attempt(() => firstWaiter(queueKey));
    const places: Value = lua.tried(() => redis.zrange(queueKey, 0, 15));
    let heard: Value = 0;
    let unheard: Value = 0;
    for (let index = 1; index <= places.length; index++) {
      const [position, , lasts, sentAt]: Value = lua.captures(places[index - 1], PLACE);
      const waiter: Value = places[index];
      if (position !== undefined && lua.number(lasts) > now && waiter !== undefined && /^[^ ].*\//s.test(waiter)) {
        if (lua.number(position) <= lua.number(behind)) {
          heard = heard + 1;
        } else {
          const prefix: Value = lua.match(lockKey, /^(.*)\{[^{}]*\}$/s);
          const left = lua.formatInteger(Number(ends) + 1000 * heard + 250 * unheard);
          const said = `kept ${left} ${sentAt}`;
          const receivers: Value = lua.tried(() =>
            redis.publish(
              `${prefix}inbox:${lua.match(waiter, /^(.*)\//s)}`,
              `${redis.sha1hex(`${said} ${waiter}`)} ${said} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`,
            ),
          );
          if (receivers === 0) {
            unheard = unheard + 1;
          } else {
            heard = heard + 1;
          }
        }
        if (heard >= 4) {
          break;
        }
      }
    }
  }
  return [released, isKnown, lock];
}

// redis/lua/include/shortened.lua
function tellOfEnd(lockKey?: Value, queueKey?: Value, ends?: Value): Value {
  const behind = 0;
  lua.attempt(() => firstWaiter(queueKey));
  const places: Value = lua.tried(() => redis.zrange(queueKey, 0, 15));
  let heard: Value = 0;
  let unheard: Value = 0;
  for (let index = 1; index <= places.length; index++) {
    const [position, , lasts, sentAt]: Value = lua.captures(places[index - 1], PLACE);
    const waiter: Value = places[index];
    if (position !== undefined && lua.number(lasts) > now && waiter !== undefined && /^[^ ].*\//s.test(waiter)) {
      if (lua.number(position) <= lua.number(behind)) {
        heard = heard + 1;
      } else {
        const prefix: Value = lua.match(lockKey, /^(.*)\{[^{}]*\}$/s);
        const left = lua.formatInteger(Number(ends) + 1000 * heard + 250 * unheard);
        const said = `kept ${left} ${sentAt}`;
        const receivers: Value = lua.tried(() =>
          redis.publish(
            `${prefix}inbox:${lua.match(waiter, /^(.*)\//s)}`,
            `${redis.sha1hex(`${said} ${waiter}`)} ${said} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`,
          ),
        );
        if (receivers === 0) {
          unheard = unheard + 1;
        } else {
          heard = heard + 1;
        }
      }
      if (heard >= 4) {
        break;
      }
    }
  }
}

// acquire.lua
function acquireScript(KEYS: Value, ARGV: Value): Value {
  beginClock();
  const isFree = ARGV[6] === undefined && redis.exists(KEYS[0], KEYS[1]) === 0;
  let askedMode: Value = ARGV[3] ?? '';
  let labelText: Value = ARGV[5];
  if (askedMode === '') {
    askedMode = 'exclusive';
  }
  if (labelText === '') {
    labelText = undefined;
  }
  if (isFree && askedMode === 'exclusive') {
    let half: Value = lua.tried(() => redis.incrby(KEYS[2], '2'));
    if (typeof half === 'object') {
      if (/integer/.test(half.err) || /overflow/.test(half.err)) {
        redis.llen(KEYS[2]);
      }
      half = redis.incrby(KEYS[2], '2');
    }
    if (half > 281474976710655) {
      redis.llen(KEYS[2]);
    }
    const floor = (now - 1577836800000) * 100;
    if (half < floor) {
      half = Number(half === 2 ? floor + 100 + 2 * Math.floor((clock[1] % 1000) / 20) : floor) + 1;
      redis.set(KEYS[2], lua.formatInteger(half));
    } else if (half % 2 === 0) {
      half = Number(half) + 1;
      redis.set(KEYS[2], lua.formatInteger(half));
    }
    const token = (half - 1) * 32;
    const text = `${ARGV[0]} ${lua.formatInteger(token)} ${ARGV[1]}`;
    redis.set(KEYS[0], labelText !== undefined ? `${text} ${labelText}` : text, 'PX', ARGV[1]);
    return token;
  }

  beginQueue();

  if (isFree) {
    return take(KEYS[0], KEYS[2], undefined, ARGV[0], parseRequest(askedMode, ARGV[1], labelText), ARGV[1])[0];
  }
  const limit = lua.number(ARGV[4] ?? '') ?? 10000;
  return acquireLock(
    KEYS[0],
    KEYS[1],
    KEYS[2],
    ARGV[0],
    askedMode,
    ARGV[1],
    ARGV[2],
    limit,
    labelText,
    KEYS[3],
    ARGV[6],
  )[0];
}

// answer-roll.lua
function answerRollScript(KEYS: Value, ARGV: Value): Value {
  beginClock();
  const answers: Value = KEYS[1];
  const client: Value = ARGV[1];
  let answer: Value = ARGV[2];
  if (ARGV[0] === '') {
    answer = `${lua.formatInteger(now)} ${answer}`;
    const some: Value = lua.tried(() => redis.hrandfield(answers, 2, 'WITHVALUES'));
    for (let index = 1; index <= some.length; index += 2) {
      if (now - lua.number(lua.match(some[index], /^\d+/) ?? 0) > lua.number(ARGV[3])) {
        redis.hdel(answers, some[index - 1]);
      }
    }
  } else if (redis.hget(KEYS[0], 'nonce') !== ARGV[0]) {
    return 0;
  }
  redis.hset(answers, client, answer);
  redis.pexpire(answers, ARGV[3]);
  return 1;
}

// call-roll.lua
function callRollScript(KEYS: Value, ARGV: Value): Value {
  beginClock();
  const key: Value = KEYS[0];
  const nonce: Value = ARGV[0];
  const scope: Value = ARGV[1];
  const channel: Value = ARGV[2];
  const standing: Value = redis.hmget(key, 'nonce', 'scope', 'at', 'asked');
  const ageMs = now - (lua.number(standing[2] ?? '') ?? 0);
  if (standing[0] !== undefined && (standing[0] === nonce || (ageMs >= 0 && ageMs < lua.number(ARGV[3])))) {
    return [standing[0], standing[1], lua.number(standing[2]), Math.max(ageMs, 0), lua.number(standing[3])];
  }
  let asked: Value = -1;
  if (ARGV[5] === '1') {
    const counted: Value = lua.tried(() => redis.pubsub('NUMSUB', channel));
    asked = lua.number(counted[1] ?? -1);
  }
  redis.hset(key, 'nonce', nonce, 'scope', scope, 'at', lua.formatInteger(now), 'asked', asked);
  redis.pexpire(key, ARGV[4]);
  const told: Value = lua.tried(() => redis.publish(channel, `roll ${nonce} ${scope}`));
  if (typeof told === 'object') {
    redis.del(key);
    return told;
  }
  return [nonce, scope, now, 0, asked];
}

// change-request.lua
function changeRequestScript(KEYS: Value, ARGV: Value): Value {
  const key: Value = KEYS[0];
  const [from, to, keepMs, channel, message]: Value = ARGV.slice(0, 5);
  const standing: Value = redis.get(key) ?? '';
  if (to === '' || (standing !== from && standing !== to)) {
    return standing;
  }
  if (standing === from) {
    redis.set(key, to, 'PX', keepMs);
  }
  if (channel === '') {
    return to;
  }
  const told: Value = lua.tried(() => redis.publish(channel, message));
  if (typeof told === 'object') {
    redis.del(key);
    return told;
  }
  return to;
}

// claim-result.lua
function claimResultScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const kept: Value = lua.tried(() => redis.get(KEYS[3]));
  if (typeof kept === 'string' && /^[=-]/.test(kept) && redis.sha1hex(kept) !== ARGV[2]) {
    return ['kept', kept, ARGV[2] !== '' ? redis.sha1hex(kept) : undefined];
  }
  return acquireLock(KEYS[0], KEYS[1], KEYS[2], ARGV[0], 'exclusive', ARGV[1], '', 0, ARGV[3])[0];
}

// claim-tick.lua
function claimTickScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const [lockKey, claimKey, fenceKey, lastKey, runsKey, recordKey, pauseKey, instancesKey]: Value = KEYS;
  const [owner, leaseMs, keepMs, overlap, takeOver, dueAt, earlyMs, lateMs, lastKeepMs, maxReruns]: Value = ARGV.slice(
    0,
    10,
  );
  const [kind, historySize, schedule, previous, nextAt, recordKeepMs, entryTick, differMs, isDate]: Value = ARGV.slice(
    10,
    19,
  );
  const isRemembered: Value = lua.is(kind) ? historySize !== '0' || schedule !== '' || nextAt !== '' : kind;
  if (lua.is(isRemembered)) {
    noteInstance(instancesKey, owner, recordKeepMs);
  }
  const claim: Value = redis.get(claimKey);
  if (claim !== undefined && dueAt === '' && takeOver === 'nothing' && redis.pttl(claimKey) > lua.number(keepMs)) {
    redis.pexpire(claimKey, keepMs);
  }
  function noteNext(): Value {
    lua.tried(() =>
      redis.hset(recordKey, 'next', nextAt, 'stated', lua.formatInteger(now), 'by', lua.match(owner, /^[^/]*/)),
    );
  }
  if (claim !== undefined && kind === 'tick' && schedule !== '' && nextAt !== '') {
    const told: Value = lua.tried(() => redis.hget(recordKey, 'next'));
    const isOlder = typeof told === 'string' && (lua.number(told) ?? 0) < lua.number(nextAt);
    if (isOlder && redis.hget(recordKey, 'schedule') === schedule) {
      noteNext();
    }
  }
  if (claim === 'finished' || (takeOver !== 'nothing' && claim === undefined)) {
    return ['finished', 0, 0];
  }
  let [claimant, state, attempt]: Value = readClaim(claim);
  const isMine = claimant === owner;
  const isBegun = state !== '' && !isMine && claimant !== 'returned';
  if (isBegun) {
    attempt = Number(attempt) + 1;
  }
  const holder: Value = readLock(lockKey);
  if (holder !== undefined && holder.owner === owner && lua.is(holder.token)) {
    renewHolder(lockKey, holder, leaseMs);
    return [
      'granted',
      lua.number(holder.token),
      attempt,
      lua.firstTruthy(kind === 'catchUp' ? readRecord(recordKey).span : undefined, undefined),
    ];
  }
  const ttl: Value = lua.firstTruthy(holder !== undefined ? holderTtl(lockKey) : undefined, 0);
  if (claim !== undefined && !isMine && claimant !== 'returned') {
    if (takeOver !== 'nothing') {
      redis.pexpire(claimKey, keepMs);
    }
    if (holder !== undefined || takeOver === 'nothing' || (isBegun && takeOver === 'unbegun')) {
      return ['taken', ttl, isBegun ? 1 : 0];
    }
    if (isBegun && maxReruns !== '' && attempt > Number(lua.number(maxReruns)) + 1) {
      redis.set(claimKey, 'finished', 'PX', keepMs);
      return ['crashed', attempt - 1, 0];
    }
  }
  const record: Value = lua.is(kind) ? readRecord(recordKey) : kind;
  function isOfOthers(): Value {
    const ahead: Value = lua.number(lua.is(record.next) ? record.next : '');
    const stated: Value = lua.number(lua.is(record.stated) ? record.stated : '');
    if ((lua.is(record.schedule) ? record.schedule : '') === schedule || ahead === undefined || stated === undefined) {
      return false;
    }
    return now <= Number(ahead) + (lua.number(lateMs) ?? 60000) && now < Number(stated) + 172800000;
  }
  function noteOther(): Value {
    if (kind !== 'tick' || schedule === '' || (lua.is(record.schedule) ? record.schedule : '') === '') {
      return undefined;
    }
    let [since, at, told, text]: Value = lua.captures(
      lua.is(record.other) ? record.other : '',
      /^(\d+) (\d+) (\d) \S+ (.*)$/s,
    );
    if (text !== schedule || lua.number(at) < now - 172800000) {
      [since, at, told] = [now, 0, '0'];
    }
    const isNotice = told === '0' && Number(lua.number(since)) + Number(lua.number(differMs)) < now;
    if (!isNotice && lua.number(at) > now - 60000) {
      return undefined;
    }
    const instance: Value = lua.match(owner, /^[^/]*/);
    const other = `${lua.formatInteger(since)} ${lua.formatInteger(now)} ${isNotice ? '1' : told} ${instance} ${schedule}`;
    lua.tried(() => redis.hset(recordKey, 'other', other));
    return isNotice ? `${record.by} ${record.schedule}` : undefined;
  }
  let notice: Value;
  function noteSchedule(): Value {
    if (isOfOthers()) {
      notice = noteOther();
      return;
    }
    if (nextAt !== '') {
      noteNext();
    }
    if (schedule !== '' && record.schedule !== schedule) {
      lua.tried(() => redis.hset(recordKey, 'schedule', schedule));
      lua.tried(() => redis.hdel(recordKey, 'owed'));
    }
  }
  if (dueAt !== '' && claim === undefined) {
    const date: Value = isDate === '1' && lua.tried(() => redis.hget(recordKey, 'date'));
    if (typeof date === 'string' && lua.number(date) !== lua.number(dueAt)) {
      return ['otherDate', lua.number(date), 0];
    }
    let [refusal, byMs]: Value = judgeTick(lastKey, dueAt, earlyMs, lateMs);
    if (refusal === 'late' && kind === 'tick' && lua.is(record.since) && record.since === redis.get(lastKey)) {
      if (lua.number(dueAt) >= now - lateMs && (lua.number(nextAt) ?? 0) > now) {
        refusal = undefined;
      }
    }
    if (refusal !== undefined) {
      return [refusal, byMs, 0];
    }
    if (lua.is(kind) && previous !== '' && record.schedule === schedule) {
      const last: Value = lua.number(redis.get(lastKey) ?? '');
      if (last !== undefined && last <= now + Number(earlyMs) && last < lua.number(previous)) {
        return ['gap', last, now - dueAt];
      }
    }
  }
  if (kind === 'catchUp') {
    const till: Value = lua.match(lua.is(record.span) ? record.span : '', /(\d+)$/);
    if (claim === undefined && (record.owed !== previous || lua.number(till ?? 0) < now)) {
      return ['finished', 0, 0];
    }
  }
  let lastKeep: Value = lastKeepMs;
  let jobKeep: Value;
  if (lua.is(kind)) {
    jobKeep = keepFor(recordKey, nextAt, recordKeepMs);
    if (lua.is(isRemembered)) {
      lastKeep = lua.formatInteger(Math.max(jobKeep, lua.number(lastKeepMs) ?? 0));
    }
  }
  function refuseUnbegun(): Value {
    if (!lua.is(kind) || !isMine || state === '') {
      return;
    }
    forgetRun(runsKey, recordKey, entryTick, attempt, kind === 'catchUp' && lua.is(previous) ? previous : '');
    if (kind === 'catchUp') {
      redis.set(claimKey, writeClaim('returned', attempt), 'PX', keepMs);
    }
  }
  if (lua.is(kind) && kind !== 'manual') {
    const [at, till, by]: Value = readPause(pauseKey);
    if (at !== undefined && kind === 'tick') {
      if (dueAt !== '') {
        noteTick(lastKey, dueAt, earlyMs, lastKeep);
      }
      redis.set(claimKey, 'finished', 'PX', keepMs);
      noteSchedule();
      keepJob(recordKey, runsKey, instancesKey, jobKeep);
    }
    if (at !== undefined) {
      refuseUnbegun();
      return ['paused', till, 0, by];
    }
  }
  if (holder !== undefined && overlap === 'skip') {
    refuseUnbegun();
  }
  if (holder !== undefined && kind === 'catchUp' && overlap === 'skip') {
    return ['overlap', ttl, 0];
  }
  if (dueAt !== '') {
    noteTick(lastKey, dueAt, earlyMs, lastKeep);
  }
  if (lua.is(kind)) {
    if (lua.is(record.since) && kind === 'tick') {
      lua.tried(() => redis.hdel(recordKey, 'since'));
    }
    noteSchedule();
    if (holder !== undefined) {
      keepJob(recordKey, runsKey, instancesKey, jobKeep);
    }
  }
  if (holder !== undefined && overlap === 'skip') {
    redis.set(claimKey, 'finished', 'PX', keepMs);
    return ['overlap', ttl, 0];
  }
  const granted: Value = writeClaim(owner, attempt);
  if (holder !== undefined) {
    redis.set(claimKey, state === '' && lua.is(owner) ? owner : granted, 'PX', keepMs);
    return ['claimed', ttl, 0];
  }
  redis.set(claimKey, granted, 'PX', keepMs);
  const token = takeLock(lockKey, fenceKey, owner, 'exclusive', leaseMs, leaseMs);
  if (!lua.is(kind)) {
    return ['granted', token, attempt];
  }
  if (kind === 'catchUp') {
    lua.tried(() => redis.hdel(recordKey, 'owed'));
  }
  const flags = `${'r'.repeat(attempt - 1)}${kind === 'manual' ? 'm' : ''}${kind === 'catchUp' ? 'c' : ''}`;
  const entry = `${entryTick} ${now} ${flags === '' ? '-' : flags} ${lua.match(owner, /^[^/]*/)}`;
  if (isMine && state !== '') {
    dropOpenRun(runsKey, entryTick, attempt);
  }
  addRuns(runsKey, historySize, `${entry} ${lua.formatInteger(token)}`);
  keepJob(recordKey, runsKey, instancesKey, jobKeep);
  const isNew = nextAt !== '' && !lua.is(record.next);
  return [
    'granted',
    token,
    attempt,
    kind === 'catchUp' && lua.is(record.span) ? record.span : '',
    isNew ? 1 : 0,
    lua.is(notice) ? notice : '',
  ];
}

// downgrade.lua
function downgradeScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const [holder, token, mode, about]: Value = readHolder(KEYS[0]);
  if (holder === '' && mode === 'read') {
    return lua.is(renewMember(KEYS[0], ARGV[0], ARGV[1])) ? 1 : 0;
  }
  if (holder !== ARGV[0] || mode !== 'write' || !lua.is(token)) {
    return 0;
  }
  const leaseMs = lua.formatInteger(Math.max(ARGV[1], redis.pttl(KEYS[0])));
  redis.del(KEYS[0]);
  const request: Value = parseRequest('read', `${leaseMs}${lua.match(about, /^\d*(.*)$/s)}`);
  const lock: Value = addMember(KEYS[0], undefined, ARGV[0], request, token, leaseMs);
  grantWaiting(KEYS[0], KEYS[1], ARGV[2] === undefined && KEYS[2], lock);
  return passedOn(1);
}

// end-run.lua
function endRunScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const [lockKey, queueKey, fenceKey, runsKey, recordKey]: Value = KEYS;
  const [owner, token, outcome, errorTexts]: Value = ARGV.slice(0, 4);
  const done: Value = passedOn(releaseLock(lockKey, queueKey, ARGV[4] === undefined && fenceKey, owner)[0]);
  const open = ` ${token}`;
  let hasEnded: Value = false;
  function findRun(first?: Value, last?: Value): Value {
    const entries: Value = lua.tried(() => redis.lrange(runsKey, first, last));
    for (const [at, run] of (lua.is(entries.err) ? [] : entries).entries()) {
      const index = at + 1;
      if (run.slice(-open.length) === open && lua.match(run, /^\S+ \d+ [-rmc]+ \S+ \d+$/) !== undefined) {
        return [Number(first) + index - 1, run];
      }
      hasEnded = lua.is(hasEnded) ? hasEnded : run.includes(`${open} `);
    }
    return [];
  }
  let [index, run]: Value = findRun(0, 63);
  if (index === undefined && !lua.is(hasEnded)) {
    [index, run] = findRun(64, -1);
  }
  if (index !== undefined && outcome === 'none') {
    lua.tried(() => redis.lrem(runsKey, 1, run));
  } else if (index !== undefined) {
    lua.tried(() => redis.lset(runsKey, index, `${run} ${now} ${outcome} ${errorTexts}`));
  }
  const isFirst: Value = index ?? (done % 2 === 1 && !lua.is(hasEnded));
  const isKept: Value = outcome === 'ok' && lua.is(isFirst) ? (index ?? redis.pttl(recordKey) !== -2) : undefined;
  if (lua.is(isKept) && lua.tried(() => redis.hset(recordKey, 'ok', now)) === 1 && redis.pttl(recordKey) < 0) {
    redis.pexpire(recordKey, lua.formatInteger(Math.max(redis.pttl(runsKey), 604800000)));
  }
  return done;
}

// exchange-claim.lua
function exchangeClaimScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const claimKey: Value = KEYS[0];
  const lastKey: Value = KEYS[1];
  const [to, from, force, drop, keepMs, dueAt, earlyMs, lateMs, lastKeepMs, isJudged, mostMs]: Value = ARGV.slice(
    0,
    11,
  );
  function sealed(claim?: Value): Value {
    if (!lua.is(claim)) {
      return claim;
    }
    let [owner, rest]: Value = lua.captures(claim, /^(\S*?)(~\d+ .*)$/s);
    if (owner === undefined) {
      [owner, rest] = lua.captures(claim, /^(\S*)(.*)$/s);
    }
    if (owner === 'finished' || owner === 'returned') {
      return claim;
    }
    return `${redis.sha1hex(owner)}${rest}`;
  }
  let standing: Value = redis.get(claimKey);
  if (standing !== undefined && standing === drop) {
    const ttl = Math.max(1, redis.pttl(claimKey));
    standing = `returned${lua.match(standing, /~\d+ reruns$/) ?? lua.match(standing, / reruns$/) ?? ''}`;
    redis.del(claimKey);
    redis.set(claimKey, standing, 'PX', ttl);
  }
  if (standing === undefined && isJudged === '1') {
    const [refusal, byMs]: Value = judgeTick(lastKey, dueAt, earlyMs, lateMs);
    if (refusal !== undefined) {
      return `${refusal} ${lua.formatInteger(byMs)}`;
    }
  }
  const isOpen: Value = lua.firstTruthy(
    standing === undefined || standing === from || lua.match(`${standing} `, /^returned[ ~]/),
    force === '1' && standing !== 'finished',
  );
  if (to !== '' && lua.is(isOpen)) {
    if (dueAt !== '') {
      noteTick(lastKey, dueAt, earlyMs, lastKeepMs);
    }
    redis.set(claimKey, to, 'PX', keepMs);
    return sealed(to);
  }
  if (standing !== undefined && keepMs !== '') {
    redis.pexpire(claimKey, keepMs);
  }
  if (standing !== undefined && mostMs !== '' && redis.pttl(claimKey) > lua.number(mostMs)) {
    redis.pexpire(claimKey, mostMs);
  }
  return sealed(standing);
}

// finish-tick.lua
function finishTickScript(KEYS: Value, ARGV: Value): Value {
  const claimKey: Value = KEYS[0];
  const runsKey: Value = KEYS[1];
  const recordKey: Value = KEYS[2];
  const [owner, keepMs, to, entryTick, lastMissed]: Value = ARGV.slice(0, 5);
  const claim: Value = redis.get(claimKey);
  if (claim !== undefined && claim === to) {
    return redis.pexpire(claimKey, keepMs);
  }
  const [claimant, state, attempt]: Value = readClaim(claim);
  if (claimant !== owner) {
    return 0;
  }
  const stands: Value = lua.firstTruthy(to === 'returned' ? writeClaim(to, attempt) : undefined, to);
  redis.set(claimKey, stands, 'PX', keepMs);
  if (lua.is(entryTick) && state !== '') {
    forgetRun(runsKey, recordKey, entryTick, attempt, lastMissed);
  }
  return 1;
}

// force-release.lua
function forceReleaseScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const meant: Value = lua.number(ARGV[0]);
  function isMeant(token?: Value): Value {
    return token <= meant && Math.floor(token / 64) === Math.floor(meant / 64);
  }
  const [holder, token]: Value = readHolder(KEYS[0]);
  if (holder === false) {
    redis.llen(KEYS[0]);
    return redis.get(KEYS[0]);
  }
  let wasHeld: Value = 0;
  let lock: Value;
  if (holder === '') {
    const entries: Value = redis.hgetall(KEYS[0]);
    let owner: Value;
    let largest: Value = -1;
    for (let index = 1; index <= entries.length; index += 2) {
      const shared: Value = lua.number(lua.match(entries[index], /^\d+ (\d+) \d+/) ?? -64);
      if (shared > largest && isMeant(shared)) {
        [owner, largest] = [entries[index - 1], shared];
      }
    }
    if (owner !== undefined) {
      [wasHeld, lock] = removeMember(KEYS[0], owner);
    }
  } else if (lua.is(holder) && isMeant(lua.number(token) ?? 0)) {
    wasHeld = redis.del(KEYS[0]);
  }
  if (wasHeld === 0) {
    return 0;
  }
  grantWaiting(KEYS[0], KEYS[1], ARGV[1] === undefined && KEYS[2], lock);
  return passedOn(1);
}

// forget-result.lua
function forgetResultScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  redis.del(KEYS[1]);
  const owner: Value = readHolder(KEYS[0])[0];
  if (lua.is(owner) && owner !== '') {
    redis.set(KEYS[1], `!${redis.sha1hex(owner)}`, 'PX', ARGV[0]);
  }
  return 1;
}

// index-jobs.lua
function indexJobsScript(KEYS: Value, ARGV: Value): Value {
  beginClock();
  const indexKey: Value = KEYS[0];
  const command: Value = ARGV[0];
  const number: Value = ARGV[1];
  if (command === 'list') {
    return redis.zrange(indexKey, 0, -1);
  }
  for (let index = 3; index <= ARGV.length; index++) {
    if (command === 'add') {
      redis.zadd(indexKey, now, ARGV[index - 1]);
    } else {
      const score: Value = redis.zscore(indexKey, ARGV[index - 1]);
      if (score !== undefined && lua.number(score) < lua.number(number)) {
        redis.zrem(indexKey, ARGV[index - 1]);
      }
    }
  }
  if (command === 'add') {
    redis.pexpire(indexKey, lua.formatInteger(Math.max(number, redis.pttl(indexKey))));
  }
  return 1;
}

// inspect.lua
function inspectScript(KEYS: Value): Value {
  beginClock();

  function clientOf(owner?: Value): Value {
    return (lua.match(owner, /^(\S+)\//) ?? lua.match(owner, /^[^/\s]*/)).slice(0, 200);
  }
  let waiters: Value = [];
  let members: Value = redis.zrange(KEYS[1], 0, -1);
  for (let index = 1; index <= members.length; index += 2) {
    const expiry: Value = lua.match(members[index - 1], /^ \d+ \S+ (\d+) \d+ \d/);
    if (expiry === undefined || members[index] === undefined) {
      break;
    }
    if (lua.number(expiry) > now) {
      waiters.push(`${clientOf(members[index])}${lua.match(members[index - 1].slice(0, 400), /^[^\n]*/)}`);
    }
  }
  waiters = waiters.join('\n');
  const [holder, token, mode, about, depth]: Value = readHolder(KEYS[0]);
  if (holder === false) {
    redis.llen(KEYS[0]);
    return redis.get(KEYS[0]);
  }
  const lines: Value = [];
  let ttl: Value = 0;
  let total: Value = 0;
  if (holder === '') {
    members = redis.hgetall(KEYS[0]);
    for (let index = 1; index <= members.length; index += 2) {
      if (members[index - 1] === 'total') {
        total = lua.number(members[index]) ?? 0;
      }
      const expiry: Value = lua.match(members[index], /^\d+ \d+ (\d+)/);
      if (expiry !== undefined && lua.number(expiry) > now) {
        ttl = Math.max(ttl, expiry - now);
        lines.push(`${clientOf(members[index - 1])} ${lua.match(members[index].slice(0, 360), /^[^\n]*/)}`);
      }
    }
  } else if (lua.is(holder)) {
    ttl = holderTtl(KEYS[0]);
    lines[0] = `${clientOf(holder)} ${lua.cut(lua.is(depth) ? depth : 1, 7)} ${lua.cut(lua.is(token) ? token : 0, 20)} ${lua.formatInteger(now + Number(ttl))} ${lua.match(about.slice(0, 320), /^[^\n]*/)}`;
  }
  const head = `${lua.cut(lines[0] !== undefined && lua.is(mode) ? mode : '', 9)} ${lines.length} ${lua.formatInteger(now)}`;
  return [ttl, total, `${head}\n${lines.join('\n')}`, waiters];
}

// keep-result.lua
function keepResultScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const owner: Value = ARGV[0];
  const ttlMs: Value = ARGV[1];
  const result: Value = ARGV[2];
  const held: Value = releaseLock(KEYS[0], KEYS[1], ARGV[3] === undefined && KEYS[2], owner)[0];
  if (held === 1) {
    if (lua.tried(() => redis.get(KEYS[3])) === `!${redis.sha1hex(owner)}`) {
      redis.del(KEYS[3]);
    } else {
      redis.set(KEYS[3], result, 'PX', ttlMs);
    }
  }
  return passedOn(held);
}

// keep.lua
function keepScript(KEYS: Value, ARGV: Value): Value {
  beginClock();
  beginQueue();

  let glances: Value = 500;
  function soonestOf(lockKey?: Value, known?: Value): Value {
    const page: Value = glances > 0 && redis.hscan(lockKey, '0', 'COUNT', 100);
    if (!lua.is(page) || page[0] !== '0') {
      return known;
    }
    const entries: Value = page[1];
    let soonest: Value = 9000000000000000;
    glances = glances - entries.length / 2;
    for (let index = 1; index <= entries.length; index += 2) {
      const lasts: Value = lua.number(lua.match(entries[index], /^\d+ \d+ (\d+)/));
      if (entries[index - 1] === 'sweep' || (lasts !== undefined && lasts <= now)) {
        return known;
      }
      if (lasts !== undefined) {
        soonest = Math.min(soonest, lasts);
      }
    }
    if (soonest >= 1000000000000000) {
      return known;
    }
    redis.hset(lockKey, 'soonest', lua.formatInteger(soonest));
    return soonest;
  }
  function keep(lockKey?: Value, queueKey?: Value, owner?: Value, leaseMs?: Value, lastPlace?: Value): Value {
    let before: Value = lastPlace - 1;
    let isOnly: Value = false;
    const found: Value = redis.zrange(queueKey, 2 * before, 2 * before + 3);
    let data: Value = found[0];
    if (found[1] === owner) {
      isOnly = before === 0 && found.length === 3;
    } else {
      const moved: Value = findPlace(queueKey, owner);
      data = moved !== undefined ? redis.zrange(queueKey, moved, moved, 'BYSCORE')[0] : undefined;
      before = undefined;
    }
    const [number, mode, stands, label]: Value = lua.captures(data ?? '', /^ (\d+) (\S+) (\d+) \d+ \d+(.*)$/s);
    if (number === undefined || lua.number(stands) <= now) {
      return 0;
    }
    const [holder, token, held, about, depth]: Value = readHolder(lockKey);
    if (holder === undefined || holder === owner) {
      return 0;
    }
    if (!lua.is(holder)) {
      redis.llen(lockKey);
      return redis.get(lockKey);
    }
    let lock: Value = { owner: holder, token, mode: held, about, depth };
    if (holder === '' || mode.slice(0, 1) === 's') {
      if (holder === '') {
        lock = {
          mode: held,
          used: lua.number(about[1]),
          soonest: lua.number(about[2]),
          total: lua.number(about[3]),
          resized: about[4] === '1',
        };
        if (lock.soonest <= now) {
          lock.soonest = soonestOf(lockKey, lock.soonest);
        }
      }
      const request: Value = parseRequest(mode);
      if (!lua.is(request.count) || isMismatch(lock, request)) {
        return 0;
      }
      if (lua.is(lock.used) && (lock.soonest <= now || lock.used <= 0 || admits(lock, request))) {
        const [first, , lasts]: Value = lua.captures(redis.zrange(queueKey, 0, 0)[0], PLACE);
        if (first === undefined || first === number || lua.number(lasts) <= now) {
          return 0;
        }
      }
    }
    const expiry = now + Number(leaseMs);
    const place = ` ${mode} ${expiry} ${ARGV[0]} ${leaseMs}${label}`;
    let soonest: Value = expiry;
    const rewritten = ` ${number}${place}`;
    redis.zadd(queueKey, expiry, `#${number}`, number, rewritten);
    if (data !== owner && data !== rewritten) {
      redis.zrem(queueKey, data);
    }
    before = lua.is(before) ? before : redis.zcount(queueKey, '-inf', `(${number}`) / 2;
    if (isOnly || redis.pttl(queueKey) < lua.number(leaseMs)) {
      redis.pexpire(queueKey, leaseMs);
    }
    if (!isOnly) {
      soonest = redis.zrange(queueKey, `(${now}`, '(100000000000000', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES');
      soonest = lua.number(soonest[1] ?? expiry);
    }
    if (held === 'read') {
      soonest = Math.max(now + 1, Math.min(soonest, lock.soonest));
    }
    const ttl: Value =
      held === 'semaphore' || (lua.is(lock.soonest) && lock.soonest <= now)
        ? Math.max(1, lock.soonest - now)
        : holderTtl(lockKey);
    let seen: Value = '';
    if (lua.is(lock) && lua.is(lock.owner)) {
      const client: Value = lua.match(lock.owner, /^(\S+)\//);
      if (client !== undefined) {
        const standing: Value =
          typeof lock.token === 'string'
            ? lock.token.slice(0, 20)
            : lua.formatInteger(lua.is(lock.token) ? lock.token : 0);
        seen = `${lua.cut(lock.mode, 9)} 1 ${lua.formatInteger(now)}\n${client.slice(0, 200)} ${lua.is(lock.depth) ? lock.depth.slice(0, 7) : 1} ${standing} ${lua.formatInteger(now + Number(ttl))} ${lock.about.length < 17 && lua.is(lock.about) ? lock.about : lua.match(lock.about.slice(0, 320), /^[^\n]*/)}`;
      }
    } else if (lua.is(lock) && !lua.is(isCut)) {
      const named: Value = [];
      const fields: Value = lua.tried(() => redis.hrandfield(lockKey, 14, 'WITHVALUES'));
      for (let index = 1; index <= fields.length; index += 2) {
        const client: Value = lua.match(fields[index - 1], /^(\S+)\//);
        if (client !== undefined) {
          named.push(`${client.slice(0, 200)} ${lua.match(fields[index].slice(0, 360), /^[^\n]*/)}`);
        }
      }
      let count: Value = named.length;
      if (fields.length === 28) {
        count = lua.firstTruthy(
          lua.is(lock.total) ? redis.hlen(lockKey) - (lua.is(lock.sweep) ? 6 : 5) : lock.used,
          count,
        );
      }
      if (named[0] !== undefined) {
        seen = `${lock.mode.slice(0, 9)} ${count} ${now}\n${named.join('\n')}`;
      }
    }
    return [ttl, seen, Number(before) + 1, soonest - now];
  }
  const replies: Value = [];
  for (let place = 1; place <= (ARGV.length - 1) / 3; place++) {
    const lock = 2 * place - 1;
    const first = 3 * place - 1;
    let [isDone, reply]: Value = lua.attempt(() => [
      keep(KEYS[lock - 1], KEYS[lock], ARGV[first - 1], ARGV[first], ARGV[first + 1]),
    ]);
    if (!isDone) {
      reply = typeof reply === 'object' && lua.is(reply.err) ? reply.err : String(reply);
      if (!/^[A-Z]+ /.test(reply)) {
        reply = `ERR ${reply}`;
      }
      const isOwn = reply.includes('WRONGTYPE') || reply.includes('NOPERM') || reply.includes('The user executing');
      if (!isOwn) {
        return { err: reply };
      }
    }
    replies.push(reply);
  }
  return replies;
}

// label.lua
function labelScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const owner: Value = ARGV[0];
  const label: Value = ARGV[1] !== '' ? ` ${ARGV[1]}` : '';
  let [holder, token, mode, about, depth]: Value = readHolder(KEYS[0]);
  if (holder === '') {
    const [permits, known, expiry, told]: Value = findMember(KEYS[0], owner);
    if (permits === undefined) {
      return 0;
    }
    const lease: Value = lua.match(told, /^\d+/);
    redis.hset(KEYS[0], owner, `${permits} ${known} ${lua.formatInteger(expiry)} ${lease}${label}`);
    return 1;
  }
  if (holder !== owner) {
    return 0;
  }
  about = `${lua.match(about, /^\d*/)}${label}`;
  writeHolder(KEYS[0], { owner, token, mode, about, depth });
  return 1;
}

// look-jobs.lua
function lookJobsScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  function listOf(reply?: Value): Value {
    return typeof reply === 'object' && !lua.is(reply.err) && lua.is(reply) ? reply : [];
  }
  function textOf(key?: Value): Value {
    const reply: Value = lua.tried(() => redis.get(key));
    return typeof reply === 'string' && reply !== undefined ? reply : '';
  }
  const mostRuns: Value = lua.number(ARGV[0]);
  const mostInstances: Value = lua.number(ARGV[1]);
  const jobs: Value = [now];
  for (let base = 0; base <= KEYS.length - 6; base += 6) {
    const [, token]: Value = readHolder(KEYS[base]);
    const most = Math.max(mostRuns, lua.is(token) ? 8 : 0);
    const runs: Value = lua.firstTruthy(
      most > 0 ? listOf(lua.tried(() => redis.lrange(KEYS[base + 2], 0, most - 1))) : undefined,
      [],
    );
    if (lua.is(token) && runs.length === most) {
      let isFound: Value = false;
      const open = ` ${token}`;
      for (const run of runs) {
        isFound = lua.is(isFound) ? isFound : run.slice(-open.length) === open;
      }
      for (const run of lua.is(isFound) ? [] : listOf(lua.tried(() => redis.lrange(KEYS[base + 2], most, -1)))) {
        if (run.slice(-open.length) === open) {
          runs.push(run);
        }
      }
    }
    const record: Value = listOf(
      lua.tried(() =>
        redis.hmget(KEYS[base + 3], 'next', 'ok', 'missed', 'owed', 'span', 'pause', 'schedule', 'stated', 'other'),
      ),
    );
    let instances: Value = [];
    let count: Value = '';
    if (mostInstances > 0) {
      instances = listOf(lua.tried(() => redis.zrange(KEYS[base + 5], 0, mostInstances - 1, 'REV', 'WITHSCORES')));
      count = instances.length / 2;
      if (count === mostInstances) {
        count = redis.zcard(KEYS[base + 5]);
      }
    }
    const isKnown: Value = record[0] ?? record[1] ?? record[2] ?? record[3] ?? record[4] ?? record[5] ?? record[6];
    const size = jobs.length;
    jobs[size] =
      `${isKnown !== undefined ? 1 : ''}\n${textOf(KEYS[base + 1])}\n${lua.is(token) ? token : ''}\n${count}\n${record[0] ?? ''}\n${record[1] ?? ''}\n${record[2] ?? ''}\n${record[3] ?? ''}\n${record[4] ?? ''}\n${record[5] ?? ''}\n${record[7] ?? ''}\n${record[8] ?? ''}\n${record[6] ?? ''}`;
    jobs[size + 1] = textOf(KEYS[base + 4]);
    jobs[size + 2] = runs.length === 1 && runs[0] !== undefined ? runs[0] : runs.join('\n');
    jobs[size + 3] = instances.join('\n');
  }
  return jobs;
}

// lower-permits.lua
function lowerPermitsScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const lock: Value = readLock(KEYS[0]);
  if (lock === undefined || lock.mode !== 'semaphore') {
    return 0;
  }
  const [permits, token, expiry, about]: Value = findMember(KEYS[0], ARGV[0]);
  if (permits === undefined) {
    return 0;
  }
  const freed = permits - ARGV[1];
  if (freed > 0) {
    keepAlive(KEYS[0], expiry - now);
    lock.used = lock.used - freed;
    const entry = `${ARGV[1]} ${token} ${lua.formatInteger(expiry)} ${about}`;
    redis.hset(KEYS[0], ARGV[0], entry, 'used', lock.used);
  }
  grantWaiting(KEYS[0], KEYS[1], ARGV[2] === undefined && KEYS[2], lock);
  return passedOn(1);
}

// mark-done.lua
function markDoneScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  if (ARGV[0] === '') {
    const doneAt: Value = redis.get(KEYS[1]);
    return doneAt !== undefined ? now - (lua.number(doneAt) ?? now) : undefined;
  }
  if (readHolder(KEYS[0])[0] !== ARGV[0]) {
    return undefined;
  }
  redis.set(KEYS[1], now, 'PX', ARGV[1]);
  return 0;
}

// note-missed.lua
function noteMissedScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const [lastKey, runsKey, recordKey, pauseKey, instancesKey]: Value = KEYS;
  const [schedule, after, historySize, runWithinMs, nextAt, recordKeepMs, lastKeepMs, owner]: Value = ARGV.slice(0, 8);
  const earlierCount: Value = ARGV[8];
  const earlierFirst: Value = ARGV[9];
  const earlierLast: Value = ARGV[10];
  const record: Value = readRecord(recordKey);
  function owedNow(): Value {
    const till: Value = lua.match(lua.is(record.span) ? record.span : '', /(\d+)$/);
    return lua.is(record.owed) && lua.number(till ?? 0) >= now && lua.is(record.span) ? record.span : '';
  }
  const last: Value = redis.get(lastKey);
  const told = `${after} ${ARGV[ARGV.length - 1]} ${owner}`;
  const isCurrent: Value =
    last !== undefined && lua.number(last) === lua.number(after) ? record.schedule === schedule : undefined;
  if (!lua.is(isCurrent) && record.told !== told) {
    return ['stale', 0, 0, 0, owedNow(), []];
  }
  const [pausedAt, pausedTill]: Value = readPause(pauseKey);
  const pauses: Value = [];
  for (const [, from, till] of (lua.is(record.pause) ? record.pause : '').matchAll(/(\d+) (\d+)/g)) {
    pauses.push({ from: lua.number(from), till: lua.number(till) });
  }
  function isPaused(tick?: Value): Value {
    if (pausedAt !== undefined && tick >= pausedAt && (pausedTill === 0 || tick <= pausedTill)) {
      return true;
    }
    for (const pause of pauses) {
      if (tick >= pause.from && tick <= pause.till) {
        return true;
      }
    }
    return false;
  }
  const ticks: Value = [];
  const entries: Value = [];
  let count: Value = lua.number(earlierCount);
  let first: Value = lua.number(earlierFirst);
  if (count > 0 && isPaused(first)) {
    count = 0;
    first = undefined;
  }
  const instance: Value = lua.match(owner, /^[^/]*/);
  for (let index = 12; index <= ARGV.length; index++) {
    const tick: Value = lua.number(ARGV[index - 1]);
    if (!isPaused(tick)) {
      ticks.push(tick);
      first = lua.is(first) ? first : tick;
      entries.push(`${ARGV[index - 1]} ${now} x ${instance}`);
    }
  }
  count = Number(count) + ticks.length;
  const newest: Value = ticks[ticks.length - 1] ?? lua.number(earlierLast);
  const [downFrom, downTill]: Value = lua.captures(lua.is(record.down) ? record.down : '', /^(\d+) (\d+)$/);
  const isDown: Value =
    downFrom !== undefined && count > 0 && first >= lua.number(downFrom) && newest <= lua.number(downTill) ? 1 : 0;
  if (!lua.is(isCurrent)) {
    if (count > 0) {
      return ['noted', count, first, newest, owedNow(), ticks, isDown];
    }
    return ['stale', 0, 0, 0, owedNow(), []];
  }
  const ttl = keepFor(recordKey, nextAt, recordKeepMs);
  redis.set(lastKey, ARGV[ARGV.length - 1], 'PX', lua.formatInteger(Math.max(ttl, lastKeepMs)));
  if (count === 0) {
    return ['noted', 0, 0, 0, owedNow(), []];
  }
  lua.tried(() =>
    redis.hset(recordKey, 'missed', lua.formatInteger((lua.number(record.missed) ?? 0) + Number(count)), 'told', told),
  );
  if (entries.length > 0) {
    addRuns(runsKey, historySize, ...entries);
  }
  if (runWithinMs !== '' && Number(newest) + Number(runWithinMs) >= now) {
    const [owedCount, owedFirst]: Value = lua.captures(owedNow(), /^(\d+) (\d+)/);
    const span = `${lua.formatInteger(Number(count) + Number(owedCount ?? 0))} ${lua.formatInteger(lua.number(owedFirst ?? first))} ${lua.formatInteger(newest)} ${lua.formatInteger(Number(newest) + Number(runWithinMs))}`;
    lua.tried(() => redis.hset(recordKey, 'owed', lua.formatInteger(newest), 'span', span));
    [record.owed, record.span] = [newest, span];
  }
  keepJob(recordKey, runsKey, instancesKey, ttl);
  return ['noted', count, first, newest, owedNow(), ticks, isDown];
}

// pause-job.lua
function pauseJobScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const pauseKey: Value = KEYS[0];
  const recordKey: Value = KEYS[1];
  const lastKey: Value = KEYS[2];
  const [command, untilAt, by, keepMs, mostPauses]: Value = ARGV.slice(0, 5);
  const standing: Value = redis.get(pauseKey) ?? '';
  if (command === 'resume') {
    if (standing === '') {
      return '';
    }
    redis.del(pauseKey);
    const record: Value = readRecord(recordKey);
    if (lua.is(record.schedule)) {
      const last = lua.number(redis.get(lastKey) ?? '') ?? 0;
      const ttl = keepFor(recordKey, '', keepMs);
      if (last < now) {
        redis.set(lastKey, lua.formatInteger(now), 'PX', ttl);
      }
    }
    lua.tried(() => redis.hdel(recordKey, 'pause'));
    return standing;
  }
  const at: Value = readPause(pauseKey)[0] ?? now;
  const text = `${lua.formatInteger(at)} ${untilAt} ${by}`;
  if (untilAt === '0') {
    redis.set(pauseKey, text);
  } else {
    const left = Math.max(1, untilAt - now);
    redis.set(pauseKey, text, 'PX', lua.formatInteger(left));
    const last = lua.number(lua.tried(() => redis.get(lastKey)) ?? '') ?? 0;
    const pauses: Value = [];
    for (const [, from, till] of lua.firstTruthy(readRecord(recordKey).pause, '').matchAll(/(\d+) (\d+)/g)) {
      if (lua.number(till) > last && lua.number(from) !== at) {
        pauses.push(`${from} ${till}`);
      }
    }
    pauses.push(`${lua.formatInteger(at)} ${untilAt}`);
    lua.tried(() =>
      redis.hset(recordKey, 'pause', pauses.slice(Math.max(1, pauses.length - mostPauses + 1) - 1).join(' ')),
    );
    lua.tried(() => redis.pexpire(recordKey, keepFor(recordKey, untilAt, keepMs)));
  }
  return standing;
}

// raise-token.lua
function raiseTokenScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const owner: Value = ARGV[0];
  const raised: Value = lua.number(ARGV[1]);
  let [holder, token, mode, about, depth]: Value = readHolder(KEYS[0]);
  let permits: Value;
  let expiry: Value;
  if (holder === '') {
    [permits, token, expiry, about] = findMember(KEYS[0], owner);
    if (permits !== undefined) {
      holder = owner;
    }
  }
  const half = Math.floor(raised / 64) * 2 + 1;
  const last: Value = lua.number(redis.get(KEYS[1]) ?? 0);
  if (last === undefined) {
    redis.llen(KEYS[1]);
  }
  if (half > last) {
    redis.set(KEYS[1], lua.formatInteger(half));
  }
  if (holder !== owner) {
    return 0;
  }
  if ((lua.number(token) ?? 0) >= raised) {
    return 1;
  }
  if (permits !== undefined) {
    redis.hset(KEYS[0], owner, `${permits} ${ARGV[1]} ${lua.formatInteger(expiry)} ${about}`);
  } else {
    writeHolder(KEYS[0], { owner, token: ARGV[1], mode, about, depth });
  }
  return 1;
}

// read-result.lua
function readResultScript(KEYS: Value): Value {
  return redis.get(KEYS[0]);
}

// read-roll.lua
function readRollScript(KEYS: Value, ARGV: Value): Value {
  const command: Value = ARGV[0];
  if (command === 'count') {
    return redis.hlen(KEYS[0]);
  }
  if (command === 'answers') {
    return redis.hscan(KEYS[0], ARGV[1], 'COUNT', ARGV[2]);
  }
  return lua.tried(() => redis.pubsub('CHANNELS', ARGV[1]));
}

// register-job.lua
function registerJobScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const [recordKey, lastKey, instancesKey, runsKey]: Value = KEYS;
  const [owner, schedule, nextAt, keepMs, command, date, startMs]: Value = ARGV.slice(0, 7);
  if (command === 'leave') {
    const left: Value = lua.tried(() => redis.zrem(instancesKey, lua.match(owner, /^[^/]*/)));
    if (left === 1 && redis.exists(instancesKey) === 0 && redis.exists(recordKey) === 1) {
      lua.tried(() => redis.hset(recordKey, 'down', lua.formatInteger(now)));
    }
    return 1;
  }
  const record: Value = readRecord(recordKey);
  const ttl = keepFor(recordKey, nextAt, keepMs);
  const last: Value = lua.number(redis.get(lastKey) ?? '');
  if (schedule !== '' && (record.schedule !== schedule || last === undefined)) {
    const since = lua.formatInteger(now);
    if (last === undefined || last < now) {
      redis.set(lastKey, since, 'PX', ttl);
    }
    redis.hdel(recordKey, 'owed', 'since');
    if (last === undefined) {
      redis.hset(recordKey, 'since', since);
    }
  }
  if (lua.is(record.schedule) && schedule !== '' && record.schedule !== schedule) {
    const since = lua.formatInteger(now);
    redis.hset(recordKey, 'other', `${since} ${since} 0 ${record.by} ${record.schedule}`);
  }
  if (date !== '') {
    const known: Value = lua.number(lua.tried(() => redis.hget(recordKey, 'date')) ?? '');
    if (known === undefined || known > now || Number(known) + Number(lua.number(startMs)) < now) {
      redis.hset(recordKey, 'date', date);
    }
  }
  if (lua.is(record.down) && !/ /.test(record.down)) {
    redis.hset(recordKey, 'down', `${record.down} ${lua.formatInteger(now)}`);
  }
  if (schedule !== '' || lua.is(record.schedule) || !lua.is(record.stated)) {
    redis.hset(
      recordKey,
      'schedule',
      schedule,
      'next',
      nextAt,
      'stated',
      lua.formatInteger(now),
      'by',
      lua.match(owner, /^[^/]*/),
    );
    if (schedule === '') {
      redis.hdel(recordKey, 'schedule');
    }
  }
  lua.tried(() => redis.zrem(instancesKey, lua.match(owner, /^[^/]*/)));
  noteInstance(instancesKey, owner, keepMs);
  keepJob(recordKey, runsKey, instancesKey, ttl);
  return 1;
}

// release.lua
function releaseScript(KEYS: Value, ARGV: Value): Value {
  const text: Value = lua.tried(() => redis.get(KEYS[0]));
  const isOwners = typeof text === 'string' && text.slice(0, ARGV[0].length + 1) === `${ARGV[0]} `;
  if (isOwners && redis.exists(KEYS[1]) === 0) {
    return redis.del(KEYS[0]);
  }
  beginClock();
  if (typeof text === 'object' && redis.exists(KEYS[1]) === 0) {
    const fields: Value = lua.tried(() => redis.hmget(KEYS[0], 'owner', ARGV[0], 'used', 'soonest'));
    if (fields[0] === ARGV[0]) {
      return redis.del(KEYS[0]);
    }
    const permits: Value = lua.match(fields[1] ?? '', /^\d+/);
    if (permits !== undefined && lua.number(fields[2]) !== undefined && (lua.number(fields[3]) ?? 0) > now) {
      const left = fields[2] - permits;
      if (left === 0) {
        return redis.del(KEYS[0]);
      }
      redis.hdel(KEYS[0], ARGV[0]);
      redis.hset(KEYS[0], 'used', left);
      return 1;
    }
  }
  if (isOwners && ARGV[1] === undefined) {
    let isPassed: Value;
    let tokenText: Value = '';
    const head: Value = lua.tried(() => redis.zrange(KEYS[1], '0', '1'));
    const [number, expiry, sentAt, about]: Value = lua.captures(
      head[0] ?? '',
      /^ (\d+) exclusive (\d+) (\d+) (\d.*)$/s,
    );
    const waiter: Value = head[1] ?? '';
    const listener: Value = lua.match(waiter, /^([^ ].*)\//s);
    const leaseMs = (expiry ?? now) - now;
    const isSimple: Value = listener !== undefined && leaseMs > 0 ? leaseMs < 1000000000000000 : undefined;
    if (lua.is(isSimple) && lua.tried(() => redis.zscore(KEYS[1], ARGV[0])) === undefined) {
      const [prefix, inCluster]: Value = lua.replaced(KEYS[2].slice(0, -5), /\{[^{}]*\}:$/, '');
      const channel = `${prefix}inbox:${listener}`;
      const listeners: Value = inCluster === 0 && lua.tried(() => redis.pubsub('NUMSUB', channel));
      if (!lua.is(listeners) || (listeners[1] ?? 0) > 0) {
        isPassed = lua.attempt(() => {
          redis.zrem(KEYS[1], waiter, head[0], `#${number}`);
          let half: Value = lua.tried(() => redis.incrby(KEYS[2], '2'));
          if (typeof half === 'object') {
            if (/integer/.test(half.err) || /overflow/.test(half.err)) {
              redis.llen(KEYS[2]);
            }
            half = redis.incrby(KEYS[2], '2');
          }
          if (half > 281474976710655) {
            redis.llen(KEYS[2]);
          }
          const floor = (now - 1577836800000) * 100;
          if (half < floor) {
            half = Number(half === 2 ? floor + 100 + 2 * Math.floor((clock[1] % 1000) / 20) : floor) + 1;
            redis.set(KEYS[2], lua.formatInteger(half));
          } else if (half % 2 === 0) {
            half = Number(half) + 1;
            redis.set(KEYS[2], lua.formatInteger(half));
          }
          const token = (half - 1) * 32;
          tokenText = lua.formatInteger(token);
          redis.set(KEYS[0], `${waiter} ${tokenText} ${about}`, 'PX', leaseMs);
          const terms = `${tokenText} ${sentAt}`;
          lua.tried(() =>
            redis.publish(
              channel,
              `${redis.sha1hex(`${terms} ${waiter}`)} ${terms} ${lua.match(KEYS[0], /\{([^{}]*)\}$/)}`,
            ),
          );
        })[0];
        if (!lua.is(isPassed)) {
          redis.del(KEYS[0]);
        }
      }
    }
    if (isPassed !== undefined) {
      return 1;
    }
  }

  beginQueue();

  return passedOn(releaseLock(KEYS[0], KEYS[1], ARGV[1] === undefined && KEYS[2], ARGV[0], text)[0]);
}

// renew-exactly.lua
function renewExactlyScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const leaseMs: Value = lua.number(ARGV[1]);
  const [owner, token, mode, about, depth]: Value = readHolder(KEYS[0]);
  if (owner === '') {
    const [, , expiry]: Value = findMember(KEYS[0], ARGV[0]);
    if (!lua.is(renewMember(KEYS[0], ARGV[0], leaseMs, true))) {
      return 0;
    }
    if (now + Number(leaseMs) < expiry) {
      tellOfEnd(KEYS[0], KEYS[1], leaseMs);
    }
    return 1;
  }
  if (owner !== ARGV[0]) {
    return 0;
  }
  const holder: Value = { owner, token, mode, about, depth };
  if (leaseMs < renewHolder(KEYS[0], holder, leaseMs, true)) {
    tellOfEnd(KEYS[0], KEYS[1], leaseMs);
  }
  return 1;
}

// renew.lua
function renewScript(KEYS: Value, ARGV: Value): Value {
  const replies: Value = [];
  const texts: Value = [];
  let areUsual: Value = true;
  for (let lease = 1; lease <= ARGV.length / 2; lease++) {
    const lockKey: Value = KEYS[lease - 1];
    const owner: Value = ARGV[2 * lease - 2];
    const leaseMs: Value = ARGV[2 * lease - 1];
    const text: Value = lua.tried(() => redis.get(lockKey));
    const known = `${owner} `;
    const isUsual =
      typeof text === 'string' &&
      text.slice(0, known.length) === known &&
      lua.match(text.slice(known.length), /^\d+ (\d+)/) === leaseMs;
    if (isUsual && redis.pttl(lockKey) <= lua.number(leaseMs)) {
      replies[lease - 1] = redis.pexpire(lockKey, leaseMs);
    } else {
      [replies[lease - 1], texts[lease - 1]] = [0, text];
      areUsual = lua.is(areUsual) ? text === undefined : areUsual;
    }
  }
  if (lua.is(areUsual)) {
    return replies;
  }
  beginClock();

  function renew(lockKey?: Value, owner?: Value, leaseMs?: Value, text?: Value): Value {
    const [present, token, mode, about, depth]: Value = readHolder(lockKey, text);
    if (present === '') {
      return lua.is(renewMember(lockKey, owner, leaseMs)) ? 1 : 0;
    }
    if (present !== owner) {
      return 0;
    }
    renewHolder(lockKey, { owner, token, mode, about, depth }, leaseMs);
    return 1;
  }
  for (let lease = 1; lease <= ARGV.length / 2; lease++) {
    if (texts[lease - 1] !== undefined) {
      const lockKey: Value = KEYS[lease - 1];
      const owner: Value = ARGV[2 * lease - 2];
      const leaseMs: Value = lua.number(ARGV[2 * lease - 1]);
      let [isDone, reply]: Value = lua.attempt(() => [renew(lockKey, owner, leaseMs, texts[lease - 1])]);
      if (!isDone) {
        reply = typeof reply === 'object' && lua.is(reply.err) ? reply.err : String(reply);
        if (!/^[A-Z]+ /.test(reply)) {
          reply = `ERR ${reply}`;
        }
        const isOwn = reply.includes('WRONGTYPE') || reply.includes('NOPERM') || reply.includes('The user executing');
        if (!isOwn) {
          return { err: reply };
        }
      }
      replies[lease - 1] = reply;
    }
  }
  return replies;
}

// resize.lua
function resizeScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const lock: Value = readLock(KEYS[0]);
  if (lock === undefined) {
    return 1;
  }
  if (lock.mode !== 'semaphore') {
    return 0;
  }
  resize(KEYS[0], lock, lua.number(ARGV[0]));
  grantWaiting(KEYS[0], KEYS[1], ARGV[1] === undefined && KEYS[2], lock);
  return passedOn(1);
}

// retain.lua
function retainScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  const owner: Value = ARGV[0];
  let leftMs: Value = lua.number(ARGV[2]);
  const fenceKey: Value = ARGV[3] === undefined && KEYS[2];
  const client: Value = lua.match(owner, /^(.*)\//s);
  const kept = `${client}/${redis.sha1hex(owner)}`;
  let [holder, token, mode, about]: Value = readHolder(KEYS[0]);
  let isKept: Value = holder === kept;
  let permits: Value;
  if (holder === '') {
    isKept = findMember(KEYS[0], kept)[0] !== undefined ? true : undefined;
    const standing: Value = [...findMember(KEYS[0], owner)];
    [permits, token, about] = [standing[0], standing[1], standing[3]];
    if (permits !== undefined) {
      holder = owner;
    }
  }
  if (lua.is(isKept)) {
    releaseLock(KEYS[0], KEYS[1], fenceKey, owner);
    return passedOn(1);
  }
  if (holder === owner && ARGV[1] !== '' && lua.is(token)) {
    leftMs = Math.min(leftMs, 1577836800000 + Math.floor(token / 3200) + Number(ARGV[1]) - now);
  }
  if (holder !== owner || leftMs < 1) {
    return passedOn(releaseLock(KEYS[0], KEYS[1], fenceKey, owner)[0]);
  }
  const forMs = lua.formatInteger(leftMs);
  about = `0${lua.match(about, /^\d*(.*)$/s)}`;
  if (permits !== undefined) {
    const lock: Value = readMembers(KEYS[0]);
    redis.hdel(KEYS[0], owner);
    lock.used = lock.used - permits;
    const request: Value = { mode, count: lua.number(permits), about };
    addMember(KEYS[0], lock, kept, request, token, forMs);
  } else {
    redis.pexpire(KEYS[0], forMs);
    writeHolder(KEYS[0], { owner: kept, token, mode, about, depth: 1 });
  }
  const lockKey: Value = KEYS[0];
  const queueKey: Value = KEYS[1];
  const ends: Value = leftMs;
  const behind = 0;
  lua.attempt(() => firstWaiter(queueKey));
  const places: Value = lua.tried(() => redis.zrange(queueKey, 0, 15));
  let heard: Value = 0;
  let unheard: Value = 0;
  for (let index = 1; index <= places.length; index++) {
    const [position, , lasts, sentAt]: Value = lua.captures(places[index - 1], PLACE);
    const waiter: Value = places[index];
    if (position !== undefined && lua.number(lasts) > now && waiter !== undefined && /^[^ ].*\//s.test(waiter)) {
      if (lua.number(position) <= lua.number(behind)) {
        heard = heard + 1;
      } else {
        const prefix: Value = lua.match(lockKey, /^(.*)\{[^{}]*\}$/s);
        const left = lua.formatInteger(Number(ends) + 1000 * heard + 250 * unheard);
        const said = `kept ${left} ${sentAt}`;
        const receivers: Value = lua.tried(() =>
          redis.publish(
            `${prefix}inbox:${lua.match(waiter, /^(.*)\//s)}`,
            `${redis.sha1hex(`${said} ${waiter}`)} ${said} ${lua.match(lockKey, /\{([^{}]*)\}$/)}`,
          ),
        );
        if (receivers === 0) {
          unheard = unheard + 1;
        } else {
          heard = heard + 1;
        }
      }
      if (heard >= 4) {
        break;
      }
    }
  }
  return 1;
}

// rotate.lua
function rotateScript(KEYS: Value, ARGV: Value): Value {
  beginClock();
  beginQueue();

  let askedMode: Value = ARGV[4] ?? '';
  const limit = lua.number(ARGV[5] ?? '') ?? 10000;
  let labelText: Value = ARGV[6];
  if (askedMode === '') {
    askedMode = 'exclusive';
  }
  if (labelText === '') {
    labelText = undefined;
  }
  const text: Value = askedMode === 'exclusive' && ARGV[3] !== '' && lua.tried(() => redis.get(KEYS[0]));
  const isOwners = typeof text === 'string' && text.slice(0, ARGV[0].length + 1) === `${ARGV[0]} `;
  let isFreed: Value = false;
  if (isOwners && ARGV[1].slice(-1) !== '!' && lua.tried(() => redis.zscore(KEYS[1], ARGV[1])) === undefined) {
    let isPassed: Value;
    let tokenText: Value = '';
    const head: Value = lua.tried(() => redis.zrange(KEYS[1], '0', '1'));
    const [number, expiry, sentAt, about]: Value = lua.captures(
      head[0] ?? '',
      /^ (\d+) exclusive (\d+) (\d+) (\d.*)$/s,
    );
    const waiter: Value = head[1] ?? '';
    const listener: Value = lua.match(waiter, /^([^ ].*)\//s);
    const leaseMs = (expiry ?? now) - now;
    const isSimple: Value = listener !== undefined && leaseMs > 0 ? leaseMs < 1000000000000000 : undefined;
    if (lua.is(isSimple) && lua.tried(() => redis.zscore(KEYS[1], ARGV[0])) === undefined) {
      const [prefix, inCluster]: Value = lua.replaced(KEYS[2].slice(0, -5), /\{[^{}]*\}:$/, '');
      const channel = `${prefix}inbox:${listener}`;
      const listeners: Value = inCluster === 0 && lua.tried(() => redis.pubsub('NUMSUB', channel));
      if (!lua.is(listeners) || (listeners[1] ?? 0) > 0) {
        isPassed = lua.attempt(() => {
          redis.zrem(KEYS[1], waiter, head[0], `#${number}`);
          let half: Value = lua.tried(() => redis.incrby(KEYS[2], '2'));
          if (typeof half === 'object') {
            if (/integer/.test(half.err) || /overflow/.test(half.err)) {
              redis.llen(KEYS[2]);
            }
            half = redis.incrby(KEYS[2], '2');
          }
          if (half > 281474976710655) {
            redis.llen(KEYS[2]);
          }
          const floor = (now - 1577836800000) * 100;
          if (half < floor) {
            half = Number(half === 2 ? floor + 100 + 2 * Math.floor((clock[1] % 1000) / 20) : floor) + 1;
            redis.set(KEYS[2], lua.formatInteger(half));
          } else if (half % 2 === 0) {
            half = Number(half) + 1;
            redis.set(KEYS[2], lua.formatInteger(half));
          }
          const token = (half - 1) * 32;
          tokenText = lua.formatInteger(token);
          redis.set(KEYS[0], `${waiter} ${tokenText} ${about}`, 'PX', leaseMs);
          const terms = `${tokenText} ${sentAt}`;
          lua.tried(() =>
            redis.publish(
              channel,
              `${redis.sha1hex(`${terms} ${waiter}`)} ${terms} ${lua.match(KEYS[0], /\{([^{}]*)\}$/)}`,
            ),
          );
        })[0];
        if (!lua.is(isPassed)) {
          redis.del(KEYS[0]);
        }
      }
    }
    if (lua.is(isPassed)) {
      const lock: Value = { owner: waiter, token: tokenText, mode: 'exclusive', about };
      const ttl = leaseMs;
      let seen: Value = '';
      if (lua.is(lock) && lua.is(lock.owner)) {
        const client: Value = lua.match(lock.owner, /^(\S+)\//);
        if (client !== undefined) {
          const standing: Value =
            typeof lock.token === 'string'
              ? lock.token.slice(0, 20)
              : lua.formatInteger(lua.is(lock.token) ? lock.token : 0);
          seen = `${lua.cut(lock.mode, 9)} 1 ${lua.formatInteger(now)}\n${client.slice(0, 200)} ${lua.is(lock.depth) ? lock.depth.slice(0, 7) : 1} ${standing} ${lua.formatInteger(now + ttl)} ${lock.about.length < 17 && lua.is(lock.about) ? lock.about : lua.match(lock.about.slice(0, 320), /^[^\n]*/)}`;
        }
      } else if (lua.is(lock) && !lua.is(isCut)) {
        const named: Value = [];
        const fields: Value = lua.tried(() => redis.hrandfield(KEYS[0], 14, 'WITHVALUES'));
        for (let index = 1; index <= fields.length; index += 2) {
          const client: Value = lua.match(fields[index - 1], /^(\S+)\//);
          if (client !== undefined) {
            named.push(`${client.slice(0, 200)} ${lua.match(fields[index].slice(0, 360), /^[^\n]*/)}`);
          }
        }
        let count: Value = named.length;
        if (fields.length === 28) {
          count = lua.firstTruthy(
            lua.is(lock.total) ? redis.hlen(KEYS[0]) - (lua.is(lock.sweep) ? 6 : 5) : lock.used,
            count,
          );
        }
        if (named[0] !== undefined) {
          seen = `${lock.mode.slice(0, 9)} ${count} ${now}\n${named.join('\n')}`;
        }
      }
      const asked: Value = labelText !== undefined ? `${ARGV[2]} ${labelText}` : ARGV[2];
      const [place, soonestMs]: Value = joinQueue(
        KEYS[1],
        undefined,
        ARGV[1],
        askedMode,
        ARGV[2],
        ARGV[3],
        limit,
        asked,
      );
      return [1, lua.is(place) ? ['queued', ttl, seen, place, soonestMs] : ['full', ttl, seen]];
    }
    isFreed = isPassed === false;
  }

  isPassedOn = true;
  let released: Value = 1;
  let isKnown: Value = false;
  let lock: Value;
  if (!isFreed) {
    [released, isKnown, lock] = releaseLock(KEYS[0], KEYS[1], KEYS[2], ARGV[0]);
  }
  return [
    released,
    ...acquireLock(
      KEYS[0],
      KEYS[1],
      KEYS[2],
      ARGV[1],
      askedMode,
      ARGV[2],
      ARGV[3],
      limit,
      labelText,
      KEYS[3],
      ARGV[7],
      isKnown,
      lock,
    ),
  ];
}

// set-depth.lua
function setDepthScript(KEYS: Value, ARGV: Value): Value {
  const [owner, token, mode, about]: Value = readHolder(KEYS[0]);
  if (owner !== ARGV[0] || mode === 'exclusive') {
    return 0;
  }
  redis.hset(KEYS[0], 'depth', ARGV[1]);
  renewHolder(KEYS[0], { owner, token, mode, about, depth: ARGV[1] }, ARGV[2]);
  return 1;
}

// verify.lua
function verifyScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  const holder: Value = readHolder(KEYS[0])[0];
  if (holder === '') {
    return findMember(KEYS[0], ARGV[0])[0] !== undefined ? 1 : 0;
  }
  return holder === ARGV[0] ? 1 : 0;
}

// watch.lua
function watchScript(KEYS: Value, ARGV: Value): Value {
  beginClock();

  beginQueue();

  let lock: Value = readLock(KEYS[0]);
  let first: Value;
  if (lua.is(lock) && lock.used === 0) {
    lock = undefined;
  }
  if (!lua.is(lock)) {
    [lock, first] = grantWaiting(KEYS[0], KEYS[1], KEYS[2], undefined);
    if (isStrange) {
      redis.llen(KEYS[1]);
    }
  }
  const isFree = !lua.is(lock) && !lua.is(first);
  const member = `!${ARGV[0]}`;
  if (isFree || ARGV[2] === '0') {
    redis.zrem(KEYS[1], member);
  } else {
    const head: Value = redis.zrange(KEYS[1], 0, 0)[0];
    if (head !== undefined && !/^[ !]/.test(head)) {
      redis.llen(KEYS[1]);
    }
    const ttl = redis.pttl(KEYS[1]);
    if (ttl < 0) {
      redis.pexpire(KEYS[1], ARGV[2]);
    }
    const score = lua.formatInteger((now + Number(ARGV[2])) * 1000 + Number(ARGV[1]));
    if (redis.zadd(KEYS[1], score, member) === 1) {
      const over: Value = redis.zrange(
        KEYS[1],
        100000000000000,
        lua.formatInteger(now * 1000),
        'BYSCORE',
        'LIMIT',
        0,
        16,
      );
      if (over.length > 0) {
        redis.zrem(KEYS[1], ...over);
      }
    }
    if (ttl < lua.number(ARGV[2])) {
      redis.pexpire(KEYS[1], ARGV[2]);
    }
  }
  if (isFree) {
    return -1;
  }
  let ttl: Value = 1;
  if (lua.is(lock) && !lua.is(lock.isPartial)) {
    ttl = Math.max(1, holderTtl(KEYS[0]));
  }
  let seen: Value = '';
  if (lua.is(lock) && lua.is(lock.owner)) {
    const client: Value = lua.match(lock.owner, /^(\S+)\//);
    if (client !== undefined) {
      const standing: Value =
        typeof lock.token === 'string'
          ? lock.token.slice(0, 20)
          : lua.formatInteger(lua.is(lock.token) ? lock.token : 0);
      seen = `${lua.cut(lock.mode, 9)} 1 ${lua.formatInteger(now)}\n${client.slice(0, 200)} ${lua.is(lock.depth) ? lock.depth.slice(0, 7) : 1} ${standing} ${lua.formatInteger(now + ttl)} ${lock.about.length < 17 && lua.is(lock.about) ? lock.about : lua.match(lock.about.slice(0, 320), /^[^\n]*/)}`;
    }
  } else if (lua.is(lock) && !lua.is(isCut)) {
    const named: Value = [];
    const fields: Value = lua.tried(() => redis.hrandfield(KEYS[0], 14, 'WITHVALUES'));
    for (let index = 1; index <= fields.length; index += 2) {
      const client: Value = lua.match(fields[index - 1], /^(\S+)\//);
      if (client !== undefined) {
        named.push(`${client.slice(0, 200)} ${lua.match(fields[index].slice(0, 360), /^[^\n]*/)}`);
      }
    }
    let count: Value = named.length;
    if (fields.length === 28) {
      count = lua.firstTruthy(
        lua.is(lock.total) ? redis.hlen(KEYS[0]) - (lua.is(lock.sweep) ? 6 : 5) : lock.used,
        count,
      );
    }
    if (named[0] !== undefined) {
      seen = `${lock.mode.slice(0, 9)} ${count} ${now}\n${named.join('\n')}`;
    }
  }
  return [ttl, seen];
}

/** The scripts by their names. */
const SCRIPTS = {
  acquire: acquireScript,
  answerRoll: answerRollScript,
  callRoll: callRollScript,
  changeRequest: changeRequestScript,
  claimResult: claimResultScript,
  claimTick: claimTickScript,
  downgrade: downgradeScript,
  endRun: endRunScript,
  exchangeClaim: exchangeClaimScript,
  finishTick: finishTickScript,
  forceRelease: forceReleaseScript,
  forgetResult: forgetResultScript,
  indexJobs: indexJobsScript,
  inspect: inspectScript,
  keepResult: keepResultScript,
  keep: keepScript,
  label: labelScript,
  lookJobs: lookJobsScript,
  lowerPermits: lowerPermitsScript,
  markDone: markDoneScript,
  noteMissed: noteMissedScript,
  pauseJob: pauseJobScript,
  raiseToken: raiseTokenScript,
  readResult: readResultScript,
  readRoll: readRollScript,
  registerJob: registerJobScript,
  release: releaseScript,
  renewExactly: renewExactlyScript,
  renew: renewScript,
  resize: resizeScript,
  retain: retainScript,
  rotate: rotateScript,
  setDepth: setDepthScript,
  verify: verifyScript,
  watch: watchScript,
};

/** Runs one script as one step. */
export function runScript(
  server: MemoryRedis,
  name: keyof typeof SCRIPTS,
  keys: readonly string[],
  args: readonly Value[],
): Value {
  redis = server;
  return SCRIPTS[name](keys, args);
}
