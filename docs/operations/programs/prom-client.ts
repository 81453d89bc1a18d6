// The same names, so the same questions.
export { default } from './observability.js';
