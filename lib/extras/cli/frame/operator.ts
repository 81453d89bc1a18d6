import { OPERATOR } from '../../../kernel/api/validation.js';
import { textOption } from './options.js';
import { userName } from './connection.js';

/** Who asks for a change, and why. */
export const OPERATOR_OPTIONS = {
  by: textOption('name', 'Your name, for the log. Default: your user name on this machine.'),
  reason: textOption('text', 'The reason, for the log.'),
} as const;

/** The facts about the operator. @throws InvalidLockOptionsError where it is too long */
export function operatorOf({ by = userName(), reason }: { by: string | undefined; reason: string | undefined }) {
  if (by !== undefined) OPERATOR.by.check('--by', by);
  if (reason !== undefined) OPERATOR.reason.check('--reason', reason);
  return { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
}
