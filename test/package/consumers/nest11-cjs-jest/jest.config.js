module.exports = {
  // Without the types, which the compiler has checked.
  transform: { '^.+\\.ts$': ['ts-jest', { transpilation: true }] },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  testTimeout: 240_000,
};
