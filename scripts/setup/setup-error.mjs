/** A problem that the person at the keyboard has to fix. Its message is enough; a stack trace would only hide it. */
export class SetupError extends Error {
  name = 'SetupError';
}
