// In processes of its own.
export { connect } from './before.mjs';
