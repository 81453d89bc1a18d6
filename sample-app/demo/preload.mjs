// Loaded into an instance before the shop (`node --import`): what the demo and the tests do to it from outside.

// A clock that is wrong by CLOCK_SKEW_MS. Timers run on: only what time it is differs.
const skewMs = Number(process.env.CLOCK_SKEW_MS ?? 0);
if (skewMs !== 0) {
  const RealDate = Date;
  const now = () => RealDate.now() + skewMs;
  globalThis.Date = new Proxy(RealDate, {
    get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
  });
}

// The instance ends with the process that started it, whatever ended that.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.channel?.unref();
