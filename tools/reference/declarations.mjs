// Reads what the public declarations of lib/ say of themselves: options, errors, events and reasons, by their exported names.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIB = join(ROOT, 'lib/');
const ENTRIES = ENTRY_POINTS.map(({ name }) => name);
/** Holds the types that the tables ask for. It exists in memory only. */
const QUERY = join(LIB, 'reference-tables.ts');

/**
 * @typedef {object} Option
 * @property {string} name with the name of its group before it, such as `shutdown.drainMs`
 * @property {string} allowed
 * @property {string} default
 * @property {string} text what it does
 * @property {string[]} see pages of docs/
 *
 * @typedef {{ name: string, code: string, fields: string[], text: string, remedy: string, see: string[] }} DocumentedError
 * @typedef {{ type: string, fields: string[], text: string }} DocumentedEvent
 */

/**
 * @param {string[]} queries types with options, as TypeScript writes them of exported names, such as `Omit<A, keyof B>`
 */
export function readDeclarations(queries) {
  const program = createProgram(queries);
  const checker = program.getTypeChecker();
  const entries = ENTRIES.map((name) => program.getSourceFile(join(LIB, `${name}.ts`)));
  const exported = new Map(
    entries.flatMap((entry) =>
      checker.getExportsOfModule(checker.getSymbolAtLocation(entry)).map((symbol) => [symbol.name, resolve(symbol)]),
    ),
  );
  /** Declarations of options that are in a table. */
  const covered = new Set();

  return {
    options: new Map(queries.map((query, index) => [query, optionsOf(queriedType(index))])),
    errors: readErrors(),
    events: readEvents(),
    reasonsOf: (name) => unionMembers(name).map(({ node, text }) => ({ name: node.literal.text, text })),
    membersOf: (name) => enumMembers(name),
    uncovered: uncoveredOptions(),
  };

  function resolve(symbol) {
    return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  }

  function queriedType(index) {
    const tables = program.getSourceFile(QUERY).statements.find(ts.isInterfaceDeclaration);
    const member = checker.getTypeAtLocation(tables).getProperty(`table${index}`);
    const type = checker.getTypeOfSymbol(member);
    if (type.flags & ts.TypeFlags.Any) throw new Error(`"${queries[index]}" is no type of exported names`);
    return type;
  }

  /** @returns {Option[]} */
  function optionsOf(type, prefix = '') {
    return checker
      .getNonNullableType(type)
      .getProperties()
      .filter(isOwn)
      .flatMap((property) => {
        for (const declaration of property.declarations) covered.add(declaration);
        const { name } = property;
        const valueType = checker.getNonNullableType(checker.getTypeOfSymbol(property));
        if (isGroup(valueType)) return optionsOf(valueType, `${prefix}${name}.`);
        const tags = tagsOf(property);
        const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0;
        return [
          {
            name: prefix + name,
            allowed: tags.get('allowed')?.[0] ?? allowedBy(valueType) ?? '',
            default: tags.get('default')?.[0] ?? (isOptional ? '' : 'required'),
            text: textOf(property),
            see: tags.get('see') ?? [],
          },
        ];
      });
  }

  /** Declared here, not by ioredis or Nest. */
  function isOwn(property) {
    return property.declarations?.some((declaration) => declaration.getSourceFile().fileName.startsWith(LIB)) ?? false;
  }

  /** An object of options that is written inside of its interface. */
  function isGroup(type) {
    const [declaration] = type.symbol?.declarations ?? [];
    return declaration !== undefined && ts.isTypeLiteralNode(declaration) && type.getCallSignatures().length === 0;
  }

  /** What a type allows, where it says all. */
  function allowedBy(type) {
    if (type.flags & ts.TypeFlags.BooleanLike) return '`true`, `false`';
    const members = (type.isUnion() ? type.types : [type]).map((member) => {
      if (member.isStringLiteral()) return `\`'${member.value}'\``;
      if (member.getCallSignatures().length > 0) return 'a function';
      if (member.symbol?.flags & ts.SymbolFlags.Interface && !checker.isArrayLikeType(member)) {
        return `\`${member.symbol.name}\``;
      }
      return undefined;
    });
    return members.includes(undefined) ? undefined : members.join(', ');
  }

  function textOf(symbol) {
    return plain(ts.displayPartsToString(symbol.getDocumentationComment(checker)));
  }

  function tagsOf(symbol) {
    const tags = new Map();
    for (const { name, text } of symbol.getJsDocTags(checker)) {
      // The compiler takes the first word behind @see for a name, and writes a space behind it.
      const value = plain(ts.displayPartsToString(text)).replace(/^docs \//, 'docs/');
      tags.set(name, [...(tags.get(name) ?? []), value]);
    }
    return tags;
  }

  /** @returns {DocumentedError[]} by their codes, so that the table stays the same where a class moves */
  function readErrors() {
    const root = exported.get('LockError');
    const ofAll = new Set(
      checker
        .getDeclaredTypeOfSymbol(root)
        .getProperties()
        .map(({ name }) => name),
    );
    return [...exported]
      .filter(([, symbol]) => symbol !== root && symbol.flags & ts.SymbolFlags.Class && extendsFrom(symbol, root))
      .map(([name, symbol]) => {
        const type = checker.getDeclaredTypeOfSymbol(symbol);
        const code = checker.getTypeOfSymbol(type.getProperty('code'));
        const tags = tagsOf(symbol);
        const fields = type.getProperties().map((field) => field.name);
        return {
          name,
          code: code.value,
          fields: fields.filter((field) => !ofAll.has(field)),
          text: textOf(symbol),
          remedy: tags.get('remedy')?.[0] ?? '',
          see: tags.get('see') ?? [],
        };
      })
      .toSorted((a, b) => (a.code + a.name < b.code + b.name ? -1 : 1));
  }

  function extendsFrom(symbol, root) {
    const bases = checker.getBaseTypes(checker.getDeclaredTypeOfSymbol(symbol));
    return bases.some((base) => base.symbol === root || extendsFrom(base.symbol, root));
  }

  /** @returns {DocumentedEvent[]} one for each `type`, whose variants may have different fields */
  function readEvents() {
    const events = new Map();
    for (const { node, text } of unionMembers('LockEvent')) {
      const variant = checker.getTypeFromTypeNode(node);
      const type = checker.getTypeOfSymbol(variant.getProperty('type')).value;
      const event = events.get(type) ?? { type, fields: [], text };
      const names = variant.getProperties().map(({ name }) => name);
      event.fields = [...new Set([...event.fields, ...names.filter((name) => name !== 'type')])];
      events.set(type, event);
    }
    return [...events.values()];
  }

  /** The members of an exported union, with the comment before each, which the compiler attaches to nothing. */
  function unionMembers(name) {
    const [declaration] = exported.get(name)?.declarations ?? [];
    if (!declaration || !ts.isTypeAliasDeclaration(declaration) || !ts.isUnionTypeNode(declaration.type)) {
      throw new Error(`${name} is no exported union`);
    }
    const source = declaration.getSourceFile();
    let end = declaration.name.end;
    return declaration.type.types.map((node) => {
      const before = source.text.slice(end, node.getStart(source));
      end = node.end;
      const comment = /\/\*\*([^]*)\*\//.exec(before)?.[1] ?? '';
      return { node, text: plain(comment.replace(/^\s*\*/gm, '')) };
    });
  }

  /** The members of an exported enum. */
  function enumMembers(name) {
    const [declaration] = exported.get(name)?.declarations ?? [];
    if (!declaration || !ts.isEnumDeclaration(declaration)) throw new Error(`${name} is no exported enum`);
    return declaration.members.map((member) => ({
      value: checker.getConstantValue(member),
      text: textOf(checker.getSymbolAtLocation(member.name)),
    }));
  }

  /** Options of exported types that no table has. */
  function uncoveredOptions() {
    const types = [...exported].filter(([name]) => /(Options|Extras|Callbacks)$/.test(name));
    return types.flatMap(([name, symbol]) =>
      checker
        .getDeclaredTypeOfSymbol(symbol)
        .getProperties()
        .filter((property) => isOwn(property) && !property.declarations.some((declared) => covered.has(declared)))
        .map((property) => `${name}.${property.name}`),
    );
  }
}

function createProgram(queries) {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  const spaceOf = (entry) => entry.replaceAll('-', '_');
  const imports = ENTRIES.map((entry) => `import type * as ${spaceOf(entry)} from './${entry}.js';`);
  const names = ENTRIES.map((entry) => namesOf(getSourceFile.call(host, join(LIB, `${entry}.ts`), 99)));
  const qualified = (query) =>
    query.replace(/(?<![.\w'"])[A-Za-z]\w*/g, (name) => {
      const entry = ENTRIES.find((_, index) => names[index].has(name));
      return entry === undefined ? name : `${spaceOf(entry)}.${name}`;
    });
  const tables = queries.map((query, index) => `  table${index}: ${qualified(query)};`);
  const text = [...imports, 'export interface Tables {', ...tables, '}', ''].join('\n');
  host.fileExists = (name) => name === QUERY || fileExists.call(host, name);
  host.getSourceFile = (name, version, ...rest) =>
    name === QUERY ? ts.createSourceFile(name, text, version) : getSourceFile.call(host, name, version, ...rest);
  return ts.createProgram([QUERY, ...ENTRIES.map((entry) => join(LIB, `${entry}.ts`))], options, host);
}

/** What an entry point exports, by its text. */
function namesOf(source) {
  return new Set(
    source.statements
      .filter((statement) => ts.isExportDeclaration(statement) && statement.exportClause)
      .flatMap(({ exportClause }) => exportClause.elements.map(({ name }) => name.text)),
  );
}

/** One line of Markdown. */
function plain(text) {
  return text
    .replace(/\{@link (\w+)\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim();
}
