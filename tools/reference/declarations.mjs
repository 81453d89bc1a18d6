// Reads the public declarations of lib/: options, errors, events and reasons. A type that users cannot import is found
// by its name in lib/.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { LIB_FILES } from '../api/source-files.mjs';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIB = join(ROOT, 'lib/');
/** Types with options, by their names. */
const OPTIONS = /(Options|Extras|Callbacks)$/;
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
 * @param {string[]} queries types with options, as TypeScript writes them of names in lib/, such as `Omit<A, keyof B>`
 */
export function readDeclarations(queries) {
  const program = createProgram(queries);
  const checker = program.getTypeChecker();
  const entries = ENTRY_POINTS.map(({ source }) => program.getSourceFile(join(ROOT, source)));
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
    optionTypes: [...exported.keys()].filter((name) => OPTIONS.test(name)),
  };

  function resolve(symbol) {
    return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  }

  function queriedType(index) {
    const tables = program.getSourceFile(QUERY).statements.find(ts.isInterfaceDeclaration);
    const member = checker.getTypeAtLocation(tables).getProperty(`table${index}`);
    const type = checker.getTypeOfSymbol(member);
    if (type.flags & ts.TypeFlags.Any) throw new Error(`"${queries[index]}" is no type of names in lib/`);
    return type;
  }

  /** @returns {Option[]} */
  function optionsOf(type, prefix = '') {
    return asDeclared(checker.getNonNullableType(type).getProperties())
      .filter(isOwn)
      .flatMap((property) => {
        for (const declaration of property.declarations) cover(declaration, property.name);
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

  /** Restores the order of declaration, which `Omit` loses. */
  function asDeclared(properties) {
    const places = new Map(properties.map((property) => [property, placeOf(property)]));
    const files = [...new Set([...places.values()].map(({ file }) => file))];
    const compare = (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.position - b.position;
    return properties.toSorted((a, b) => compare(places.get(a), places.get(b)));
  }

  function placeOf(property) {
    const all = (property.declarations ?? []).flatMap((each) => [each, ...redeclaredBy(each, property.name)]);
    const first = all.toSorted((a, b) => a.getStart() - b.getStart())[0];
    return { file: first?.getSourceFile().fileName, position: first?.getStart() ?? 0 };
  }

  /** Marks a property as covered by a table, and its redeclarations in extending interfaces. */
  function cover(declaration, name) {
    covered.add(declaration);
    for (const earlier of redeclaredBy(declaration, name)) if (!covered.has(earlier)) cover(earlier, name);
  }

  /** The declarations of the same property in the interfaces that its own extends. */
  function redeclaredBy(declaration, name) {
    if (!ts.isInterfaceDeclaration(declaration.parent)) return [];
    const bases = checker.getBaseTypes(checker.getTypeAtLocation(declaration.parent));
    return bases.flatMap((base) => base.getProperty(name)?.declarations ?? []);
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

  /** Returns the allowed values if the type is a full list of them. */
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
        const [code] = type.getProperty('code').declarations;
        const tags = tagsOf(symbol);
        const fields = type.getProperties().map((field) => field.name);
        return {
          name,
          code: code.initializer.text,
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

  /** Returns the declaration of this name in lib/, exported to users or not. */
  function declared(name) {
    const source = program.getSourceFile(declaredIn(name) ?? '');
    return source && checker.getExportsOfModule(checker.getSymbolAtLocation(source)).find((each) => each.name === name);
  }

  /** The members of a union, with the comment before each, which the compiler attaches to nothing. */
  function unionMembers(name) {
    const [declaration] = declared(name)?.declarations ?? [];
    if (!declaration || !ts.isTypeAliasDeclaration(declaration) || !ts.isUnionTypeNode(declaration.type)) {
      throw new Error(`${name} is no union`);
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

  /** The members of an enum. */
  function enumMembers(name) {
    const [declaration] = declared(name)?.declarations ?? [];
    if (!declaration || !ts.isEnumDeclaration(declaration)) throw new Error(`${name} is no enum`);
    return declaration.members.map((member) => ({
      value: checker.getConstantValue(member),
      text: textOf(checker.getSymbolAtLocation(member.name)),
    }));
  }

  /** Returns options without a table, of types that users can name, and of types that public declarations name. */
  function uncoveredOptions() {
    const types = publicTypes().filter(({ name }) => OPTIONS.test(name));
    return types.flatMap((symbol) =>
      checker
        .getDeclaredTypeOfSymbol(symbol)
        .getProperties()
        .filter((property) => isOwn(property) && isSettable(property))
        .filter((property) => !property.declarations.some((each) => covered.has(each)))
        .map((property) => `${symbol.name}.${property.name}`),
    );
  }

  /** Returns false for an option that only marks another kind of options as such. */
  function isSettable(property) {
    return !(checker.getNonNullableType(checker.getTypeOfSymbol(property)).flags & ts.TypeFlags.Never);
  }

  /** Exported symbols, what their declarations name, what those name, and so on. */
  function publicTypes() {
    const found = new Set(exported.values());
    const visit = (node) => {
      if (ts.isBlock(node) || ts.isConstructorDeclaration(node) || isPrivate(node)) return;
      const name = ts.isTypeReferenceNode(node)
        ? node.typeName
        : ts.isExpressionWithTypeArguments(node) && node.expression;
      const symbol = name && checker.getSymbolAtLocation(name);
      if (symbol) found.add(resolve(symbol));
      ts.forEachChild(node, visit);
    };
    // A set that grows is walked to its end. A class that users cannot import is none of their business.
    for (const symbol of found) {
      if (symbol.flags & ts.SymbolFlags.Class && ![...exported.values()].includes(symbol)) continue;
      (symbol.declarations ?? []).filter(isInLib).forEach((each) => visit(each));
    }
    return [...found].filter((symbol) => symbol.declarations?.some(isInLib));
  }
}

function isInLib(declaration) {
  return declaration.getSourceFile().fileName.startsWith(LIB);
}

function isPrivate(node) {
  if (node.name && ts.isPrivateIdentifier(node.name)) return true;
  return ts.canHaveModifiers(node) && ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
}

function createProgram(queries) {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.esm.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const host = LIB_FILES.hostFor(options);
  const { fileExists, getSourceFile } = host;
  const qualified = (query) =>
    query.replace(/(?<![.\w'"])(typeof )?([A-Z]\w*|(?<=typeof )\w+)/g, (whole, operator = '', name) => {
      const file = declaredIn(name);
      return file === undefined ? whole : `${operator}import('${file.replace(/ts$/, 'js')}').${name}`;
    });
  const tables = queries.map((query, index) => `  table${index}: ${qualified(query)};`);
  const text = ['export interface Tables {', ...tables, '}', ''].join('\n');
  host.fileExists = (name) => name === QUERY || fileExists.call(host, name);
  host.getSourceFile = (name, version, ...rest) => {
    return name === QUERY ? ts.createSourceFile(name, text, version) : getSourceFile(name, version, ...rest);
  };
  return ts.createProgram([QUERY, ...ENTRY_POINTS.map(({ source }) => join(ROOT, source))], options, host);
}

/** @returns {string | undefined} the file of lib/ that exports a declaration of this name to the others */
function declaredIn(name) {
  const pattern = new RegExp(
    `^export (?:declare |abstract )*(?:interface|type|class|enum|const|function) ${name}\\b`,
    'm',
  );
  const files = sourcesOfLib().filter(({ text }) => pattern.test(text));
  if (files.length > 1)
    throw new Error(`${name} is declared more than once: ${files.map(({ path }) => path).join(', ')}`);
  return files[0]?.path;
}

let sources;

function sourcesOfLib() {
  sources ??= readdirSync(LIB, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path: join(LIB, path), text: readFileSync(join(LIB, path), 'utf8') }));
  return sources;
}

/** One line of Markdown. */
function plain(text) {
  return text
    .replace(/\{@link (\w+)\s*\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim();
}
