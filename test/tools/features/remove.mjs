// Takes a feature out of a copy of lib/: its folder, its entry points, and the lines that name it elsewhere.
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/**
 * @typedef {object} Places where a feature is named outside of its folder
 * @property {readonly string[]} gone entry points that export nothing else, and files that do nothing else
 * @property {Readonly<Record<string, readonly string[]>>} lines by file, the names whose lines go beside those of the
 *   imports from the folder
 * @property {readonly string[]} [with] features that stand on it, and go first
 */

/**
 * Removes a feature.
 *
 * @param {string} lib the copy of lib/
 * @param {string} feature the name of its folder
 * @param {Places} places
 * @returns {Promise<void>}
 */
export async function removeFeature(lib, feature, { gone, lines }) {
  for (const path of [`features/${feature}`, ...gone]) {
    if (!existsSync(join(lib, path))) throw new Error(`lib/${path} does not exist. It is named for ${feature}.`);
    await rm(join(lib, path), { recursive: true });
  }
  for (const [path, names] of Object.entries(lines)) {
    const file = join(lib, path);
    await writeFile(file, withoutLines(file, await readFile(file, 'utf8'), names));
  }
}

/**
 * @param {string} file
 * @param {string} text
 * @param {readonly string[]} given
 */
function withoutLines(file, text, given) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const names = new Set(given);
  const unused = new Set(given);
  /** @type {ts.Node[]} */
  const removed = [];
  for (const statement of source.statements) {
    if (!isFromNowhere(file, statement)) continue;
    removed.push(statement);
    if (ts.isImportDeclaration(statement)) for (const name of importedBy(statement)) names.add(name);
  }
  if (removed.length === 0 && given.length === 0) throw new Error(`${file} names nothing that has gone.`);
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (removed.includes(node)) return;
    if (isName(node) && names.has(node.text)) {
      unused.delete(node.text);
      removed.push(lineOf(node));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  if (unused.size > 0) throw new Error(`${file} does not name ${[...unused].join(', ')}.`);
  const outer = removed.filter((node) => !removed.some((other) => other !== node && isInside(node, other)));
  const ranges = [...new Set(outer)].map((node) => [startOf(node), endOf(node, text)]);
  let result = text;
  for (const [from, to] of ranges.sort(([a], [b]) => b - a)) result = result.slice(0, from) + result.slice(to);
  return result;
}

/** An import or export of a file that has gone. */
function isFromNowhere(file, statement) {
  if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return false;
  const from = statement.moduleSpecifier?.text;
  return from?.startsWith('.') && !existsSync(join(dirname(file), from.replace(/\.js$/, '.ts')));
}

function importedBy({ importClause }) {
  const bindings = importClause?.namedBindings;
  if (!bindings) return [];
  return ts.isNamedImports(bindings) ? bindings.elements.map(({ name }) => name.text) : [bindings.name.text];
}

function isName(node) {
  return ts.isIdentifier(node) || ts.isPrivateIdentifier(node) || ts.isStringLiteral(node);
}

/** The smallest part around a name that stands for itself: a statement, a member, an element of a list. */
function lineOf(node) {
  for (let part = node; ; part = part.parent) if (isLine(part)) return part;
}

function isLine(node) {
  const { parent } = node;
  if (ts.isStatement(node)) return ts.isBlock(parent) || ts.isSourceFile(parent);
  return (
    ts.isClassElement(node) ||
    ts.isTypeElement(node) ||
    ts.isObjectLiteralElement(node) ||
    ts.isBindingElement(node) ||
    ts.isParameter(node) ||
    ts.isImportSpecifier(node) ||
    ts.isExportSpecifier(node) ||
    (ts.isUnionTypeNode(parent) && node !== parent) ||
    (ts.isArrayLiteralExpression(parent) && parent.elements.includes(node)) ||
    ((ts.isCallExpression(parent) || ts.isNewExpression(parent)) && parent.arguments?.includes(node))
  );
}

function isInside(node, other) {
  return node.getFullStart() >= other.getFullStart() && node.end <= other.end;
}

/** With the comment above it. The last member of a union goes with the bar before it. */
function startOf(node) {
  const { parent } = node;
  return ts.isUnionTypeNode(parent) && parent.types.at(-1) === node ? parent.types.at(-2).end : node.getFullStart();
}

/** With the comma or the bar behind it. */
function endOf(node, text) {
  if (ts.isStatement(node) || ts.isClassElement(node) || ts.isTypeElement(node)) return node.end;
  return node.end + (/^\s*[,|]/.exec(text.slice(node.end))?.[0].length ?? 0);
}
