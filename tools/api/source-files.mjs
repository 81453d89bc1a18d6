// Source files that several programs of the compiler in one process share: most of their time is to read.
import ts from 'typescript';

/** By their names, for programs with the same options. */
export class SourceFiles {
  #files = new Map();

  /**
   * @param {ts.CompilerOptions} options
   * @returns {ts.CompilerHost}
   */
  hostFor(options) {
    const host = ts.createCompilerHost(options);
    const { getSourceFile } = host;
    host.getSourceFile = (name, ...rest) => {
      if (!this.#files.has(name)) this.#files.set(name, getSourceFile.call(host, name, ...rest));
      return this.#files.get(name);
    };
    return host;
  }
}

/** The files of lib/ and its packages, with the options of tsconfig.esm.json. */
export const LIB_FILES = new SourceFiles();
