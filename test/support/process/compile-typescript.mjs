/** The compiler options, shared with Jest. Nest needs the metadata of decorators. */
export const COMPILER_OPTIONS = {
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
    keepClassNames: true,
  },
  module: { type: 'es6' },
  sourceMaps: 'inline',
  swcrc: false,
};

/**
 * @param {string} text
 * @param {string} filename for messages, and for the source map
 * @returns {Promise<string>} the same as an ES module
 */
export async function compileTypescript(text, filename) {
  // Loaded lazily, because with a full cache no compiler is needed.
  const { transform } = await import('@swc/core');
  const { code } = await transform(text, { ...COMPILER_OPTIONS, filename });
  return code;
}
