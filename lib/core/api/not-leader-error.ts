import { LockError } from './errors.js';
import { quote } from '../util/quoted.js';
import { LEADER_PREFIX } from './resource.js';

/** Why an instance does not lead, where its lease was not lost. */
export type NotLeaderReason =
  /** It is a candidate that was not elected yet. */
  | 'notElected'
  /** Its term was released, and it campaigns again. */
  | 'released'
  /** It has resigned. */
  | 'resigned'
  /** The application shuts down. */
  | 'shutdown';

const REASON_EXPLAINED: Record<NotLeaderReason, string> = {
  notElected: 'it was not elected yet. Wait for whenElected(), or do nothing here',
  released: 'its term was released. End this work: another instance may lead next',
  resigned: 'it has resigned. End this work: another instance leads next',
  shutdown: 'the application is shutting down. End this work: another instance leads next',
};

/**
 * This instance does not lead. It is the reason of a term's `signal` when the instance steps down, and
 * `whenElected()` of an ended campaign rejects with it. Until the work of the term ends, no other instance leads.
 *
 * @remedy End the work: another instance leads next.
 */
export class NotLeaderError extends LockError {
  override readonly code = 'NOT_LEADER';

  constructor(
    /** The name of the leadership. Its lock, the `resource` of this error, is `leader:<name>`. */
    readonly leadership: string,
    readonly reason: NotLeaderReason,
  ) {
    super(`This instance does not lead ${quote(leadership)}: ${REASON_EXPLAINED[reason]}.`, LEADER_PREFIX + leadership);
  }
}
