import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import ts from 'typescript';
import { SourceFiles } from './source-files.mjs';

/** Heading and order of the kinds. A symbol belongs to the first kind whose flags it has. */
const KINDS = [
  ['Classes', ts.SymbolFlags.Class],
  ['Functions', ts.SymbolFlags.Function],
  ['Constants', ts.SymbolFlags.Variable],
  ['Enums', ts.SymbolFlags.Enum],
  ['Interfaces', ts.SymbolFlags.Interface],
  ['Types', ts.SymbolFlags.TypeAlias],
];

/** The heading of what signatures name without it being exported. It comes last. */
export const HIDDEN = '## Named above, not exported';

/**
 * The public names of a package as Markdown: each with its declaration as in the published `.d.ts`, without comments and
 * private members. Nothing in it depends on the file a name is declared in.
 *
 * @param {object} request
 * @param {Record<string, string>} request.entries name of an entry point, such as `./schedule`, and its source file
 * @param {string} request.tsconfig what the package is built with
 * @param {SourceFiles} [request.sourceFiles] what other programs with these options have read
 * @returns {string}
 */
export function reportApi({ entries, tsconfig, sourceFiles = new SourceFiles() }) {
  const program = programOf(Object.values(entries), tsconfig, sourceFiles);
  const checker = program.getTypeChecker();
  const homes = new Map(); // symbol -> the first entry point that exports it, or the package that it is from
  const sections = Object.entries(entries).map(([entry, file]) => {
    const exported = exportsOf(checker, program.getSourceFile(file));
    for (const { symbol } of exported) {
      const source = symbol.declarations[0].getSourceFile();
      if (program.isSourceFileFromExternalLibrary(source)) homes.set(symbol, packageOf(source));
    }
    const names = new Map(exported.map(({ name, symbol }) => [name, symbol]));
    const isAlias = ({ name, symbol }) => name !== symbol.name && names.get(symbol.name) === symbol;
    const repeated = exported.filter((each) => homes.has(each.symbol) || isAlias(each));
    const own = exported.filter((each) => !repeated.includes(each));
    for (const { symbol } of own) homes.set(symbol, entry);
    return { entry, own, repeated };
  });
  const declarations = new Declarations(program, new Set(homes.keys()));
  const text = sections.map((section) => sectionText(section, homes, declarations));
  return `${[...text, hiddenText(declarations)].filter(Boolean).join('\n\n')}\n`;
}

function packageOf({ fileName }) {
  return /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(fileName)[1];
}

function programOf(files, tsconfig, sourceFiles) {
  const { config, error } = ts.readConfigFile(tsconfig, (path) => readFileSync(path, 'utf8'));
  if (error) throw new Error(ts.flattenDiagnosticMessageText(error.messageText, '\n'));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, dirname(tsconfig));
  const ofReport = { ...options, declaration: true, removeComments: true };
  return ts.createProgram(files, ofReport, sourceFiles.hostFor(ofReport));
}

function exportsOf(checker, file) {
  return checker
    .getExportsOfModule(checker.getSymbolAtLocation(file))
    .map((exported) => {
      const specifier = exported.declarations?.find(ts.isExportSpecifier);
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      const typeOnly = specifier !== undefined && ts.isTypeOnlyExportDeclaration(specifier);
      return { name: exported.name, symbol, isType: typeOnly || !(symbol.flags & ts.SymbolFlags.Value) };
    })
    .toSorted(byName);
}

function sectionText({ entry, own, repeated }, homes, declarations) {
  const values = [...own, ...repeated].filter(({ isType }) => !isType).length;
  const types = own.length + repeated.length - values;
  const parts = [`## \`${entry}\``, `Values: ${values}. Types: ${types}.`];
  if (repeated.length > 0) {
    const texts = repeated.map(({ name, symbol }) =>
      homes.get(symbol) === entry ? `\`${name}\` for \`${symbol.name}\`` : `\`${name}\` of \`${homes.get(symbol)}\``,
    );
    parts.push(`Also here: ${texts.join(', ')}.`);
  }
  for (const [title] of KINDS) {
    const ofKind = own.filter(({ symbol }) => kindOf(symbol) === title);
    if (ofKind.length > 0) parts.push(`### ${title}`, codeBlock(ofKind, declarations));
  }
  return parts.join('\n\n');
}

/** Types in signatures that are not exported: users meet them, although they cannot import them. */
function hiddenText(declarations) {
  const texts = new Map();
  for (let next = declarations.takeHidden(); next.length > 0; next = declarations.takeHidden()) {
    for (const symbol of next) texts.set(symbol, declarations.textOf(symbol));
  }
  if (texts.size === 0) return '';
  const sorted = [...texts].toSorted(([a], [b]) => byName(a, b)).map(([, text]) => text);
  return [HIDDEN, '```ts', sorted.join('\n\n'), '```'].join('\n\n');
}

function codeBlock(names, declarations) {
  const texts = names.map(({ name, symbol, isType }) => {
    const note = isType && symbol.flags & ts.SymbolFlags.Value ? '// as a type only\n' : '';
    const alias = name === symbol.name ? '' : `// exported as ${name}\n`;
    return note + alias + declarations.textOf(symbol);
  });
  return ['```ts', texts.join('\n\n'), '```'].join('\n');
}

/** The declarations of symbols as they are published. Collects what those name of this package without exporting it. */
class Declarations {
  #program;
  #checker;
  #exported;
  #hidden = new Set();
  #told = new Set();
  #emitted = new Map();
  #printer = ts.createPrinter({ removeComments: true });

  constructor(program, exported) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.#exported = exported;
  }

  /** @returns {ts.Symbol[]} the hidden types that no earlier call returned */
  takeHidden() {
    const symbols = [...this.#hidden].filter((symbol) => !this.#told.has(symbol));
    for (const symbol of symbols) this.#told.add(symbol);
    return symbols;
  }

  textOf(symbol) {
    const files = new Set(symbol.declarations.map((declaration) => declaration.getSourceFile()));
    return [...files].flatMap((file) => this.#textsIn(file, symbol.name)).join('\n');
  }

  #textsIn(file, name) {
    const emitted = this.#emit(file);
    return emitted.statements
      .filter((statement) => declares(statement, name))
      .map((statement) => {
        const bare = this.#bare(statement, file);
        return this.#printer.printNode(ts.EmitHint.Unspecified, bare, emitted);
      });
  }

  #emit(file) {
    if (!this.#emitted.has(file)) {
      const keep = (name, text) => {
        this.#emitted.set(file, ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true));
      };
      this.#program.emit(file, keep, undefined, true, undefined, true);
    }
    return this.#emitted.get(file);
  }

  /** Without `export`, `declare`, private members, constructors that only this package can call, and the paths of types. */
  #bare(statement, file) {
    const visit = (node) => {
      if (node.kind === ts.SyntaxKind.ExportKeyword || node.kind === ts.SyntaxKind.DeclareKeyword) return undefined;
      if (ts.isClassElement(node) && isPrivate(node)) return undefined;
      if (ts.isConstructorDeclaration(node) && this.#hiddenIn(node, file).length > 0) return undefined;
      const hidden = this.#hiddenAt(node, file);
      if (hidden !== undefined) this.#hidden.add(hidden);
      if (isImportOfOwnType(node)) {
        return ts.factory.createTypeReferenceNode(node.qualifier, ts.visitNodes(node.typeArguments, visit));
      }
      return ts.visitEachChild(node, visit, undefined);
    };
    return ts.visitNode(statement, visit);
  }

  #hiddenIn(node, file) {
    const found = [];
    const visit = (child) => {
      const hidden = this.#hiddenAt(child, file);
      if (hidden !== undefined) found.push(hidden);
      ts.forEachChild(child, visit);
    };
    visit(node);
    return found;
  }

  /** @returns {ts.Symbol | undefined} what this node names, if it is of this package and not exported */
  #hiddenAt(node, file) {
    const name = nameAt(node);
    if (name === undefined || !ts.isIdentifier(name)) return undefined;
    const kinds = ts.SymbolFlags.Type | ts.SymbolFlags.Value | ts.SymbolFlags.Alias;
    const found = this.#checker.resolveName(
      name.text,
      isImportOfOwnType(node) ? this.#fileOf(node, file) : file,
      kinds,
      false,
    );
    if (found === undefined) return undefined; // a type parameter
    const symbol = found.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(found) : found;
    const isOwn = symbol.declarations?.every((declaration) => this.#isOwnFile(declaration.getSourceFile()));
    return isOwn && !this.#exported.has(symbol) ? symbol : undefined;
  }

  #isOwnFile(file) {
    return !this.#program.isSourceFileFromExternalLibrary(file) && !this.#program.isSourceFileDefaultLibrary(file);
  }

  #fileOf(importType, file) {
    const path = importType.argument.literal.text;
    const { resolvedModule } = ts.resolveModuleName(path, file.fileName, this.#program.getCompilerOptions(), ts.sys);
    return this.#program.getSourceFile(resolvedModule.resolvedFileName);
  }
}

function nameAt(node) {
  if (ts.isTypeReferenceNode(node)) return node.typeName;
  if (ts.isTypeQueryNode(node)) return node.exprName;
  if (ts.isExpressionWithTypeArguments(node)) return node.expression;
  if (isImportOfOwnType(node)) return node.qualifier;
  return undefined;
}

/** `import("./lease.js").Lease`, as the compiler writes what a file does not import by name. */
function isImportOfOwnType(node) {
  return ts.isImportTypeNode(node) && node.qualifier !== undefined && node.argument.literal.text.startsWith('.');
}

function declares(statement, name) {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.some((declaration) => declaration.name.text === name);
  }
  return statement.name?.text === name;
}

function isPrivate(member) {
  if (member.name && ts.isPrivateIdentifier(member.name)) return true;
  return (
    ts.canHaveModifiers(member) &&
    (ts.getModifiers(member) ?? []).some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)
  );
}

function kindOf(symbol) {
  const found = KINDS.find(([, flags]) => symbol.flags & flags);
  if (!found) throw new Error(`${symbol.name} is of a kind this report has no heading for`);
  return found[0];
}

function byName(a, b) {
  return a.name < b.name ? -1 : 1;
}
