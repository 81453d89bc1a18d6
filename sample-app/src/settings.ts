import { CronExpression } from '@nestjs/schedule';

const env = process.env;

/** The settings from the environment. Durations are milliseconds. */
export const settings = {
  host: env['HOST'] ?? '127.0.0.1',
  port: Number(env['PORT'] ?? 3000),
  redisUrl: env['REDIS_URL'] ?? 'redis://127.0.0.1:6379',
  /** The database of the books. Without it, they can be neither read nor closed. */
  databaseUrl: env['DATABASE_URL'] ?? '',
  /** The prefix of its keys in Redis. */
  shop: env['SHOP'] ?? 'shop',
  /** The name of this instance for locks and jobs. */
  instance: env['INSTANCE'] ?? 'shop-1',
  /** The till that this instance counts. */
  till: env['TILL'] ?? env['INSTANCE'] ?? 'shop-1',
  /** The maximum wait of a request for a lock, before it is answered with 423. */
  lockWaitMs: Number(env['LOCK_WAIT_MS'] ?? 10_000),
  /** The lease of the stocktaking, which takes longer. */
  countLeaseMs: Number(env['COUNT_LEASE_MS'] ?? 1_000),
  /** The key that operators send as x-operator-key. Without one there are no operators. */
  operatorKey: env['OPERATOR_KEY'] ?? '',
  /** The interval of polling the outbox. */
  pollMs: Number(env['POLL_MS'] ?? 100),
  /**
   * The durations of simulated work: a payment, one page of the report, one shelf of the stocktaking, the bank, one
   * page of the catalogue to read and to print, an export, a mail, the query of the bestsellers, the model of the assistant.
   */
  paymentMs: Number(env['PAYMENT_MS'] ?? 20),
  reportPageMs: Number(env['REPORT_PAGE_MS'] ?? 2_000),
  shelfMs: Number(env['SHELF_MS'] ?? 250),
  bankMs: Number(env['BANK_MS'] ?? 500),
  pageMs: Number(env['PAGE_MS'] ?? 10),
  printMs: Number(env['PRINT_MS'] ?? 30),
  exportMs: Number(env['EXPORT_MS'] ?? 200),
  queryMs: Number(env['QUERY_MS'] ?? 300),
  modelMs: Number(env['MODEL_MS'] ?? 200),
  mailMs: Number(env['MAIL_MS'] ?? 50),
  drawSchedule: env['DRAW_SCHEDULE'] ?? CronExpression.EVERY_MINUTE,
  reportSchedule: env['REPORT_SCHEDULE'] ?? CronExpression.EVERY_DAY_AT_MIDNIGHT,
  tillSchedule: env['TILL_SCHEDULE'] ?? CronExpression.EVERY_DAY_AT_10PM,
};
