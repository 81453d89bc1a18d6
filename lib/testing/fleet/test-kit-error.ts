import { brand } from '../../kernel/util/objects.js';

/** The reason, for programs. */
export type TestKitErrorCode =
  | 'notOnKit'
  | 'realClock'
  | 'otherClock'
  | 'alreadyAdvancing'
  | 'endless'
  | 'notIdle'
  | 'unknownResource'
  | 'unknownJob'
  | 'notRun'
  | 'closed'
  | 'lockOrder'
  | 'invalid';

/** A call to the testing kit cannot work. The message suggests a fix. */
export class TestKitError extends Error {
  override readonly name = 'TestKitError';

  /** @internal */
  constructor(
    readonly code: TestKitErrorCode,
    message: string,
  ) {
    super(message);
  }
}

brand({ TestKitError });
