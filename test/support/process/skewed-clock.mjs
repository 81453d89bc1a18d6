// `node --import <this file>`: the wall clock of the process is wrong by CLOCK_SKEW_MS; its monotonic clock is not.
const skewMs = Number(process.env.CLOCK_SKEW_MS ?? 0);
const TrueDate = Date;

globalThis.Date = class Date extends TrueDate {
  constructor(...args) {
    if (args.length === 0) super(TrueDate.now() + skewMs);
    else super(...args);
  }

  static now() {
    return TrueDate.now() + skewMs;
  }
};
