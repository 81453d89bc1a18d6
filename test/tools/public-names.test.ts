import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { root } from '../../scripts/setup.mjs';

/** What an entry point exports, by its text: it re-exports by name, and nothing else. */
function namesOf(source: string): string[] {
  const path = join(root, source);
  const { statements } = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest);
  return statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || !statement.exportClause || !ts.isNamedExports(statement.exportClause)) {
      throw new Error(`${path} has a statement that does not export names of another file`);
    }
    return statement.exportClause.elements.map(({ name }) => name.text);
  });
}

describe('the public names', () => {
  const names = new Map(ENTRY_POINTS.map(({ subpath, source }) => [subpath, namesOf(source)]));

  it.each([...names])('of %s are each there once', (_subpath, list) => {
    expect(list).toEqual([...new Set(list)]);
  });
});
