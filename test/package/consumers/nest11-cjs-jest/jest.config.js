module.exports = {
  roots: ['<rootDir>/src', '<rootDir>/test'],
  // Without the types, which the compiler has checked: by isolatedModules of tsconfig.json.
  transform: { '^.+\\.ts$': 'ts-jest' },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  testTimeout: 240_000,
};
