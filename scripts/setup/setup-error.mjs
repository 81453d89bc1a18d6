/** Something the person at the keyboard has to fix. Its message says what; a stack trace would only hide it. */
export class SetupError extends Error {
  name = 'SetupError';
}
