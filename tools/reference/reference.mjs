// npm run docs:reference regenerates the tables of docs/reference from the declarations of lib/
//
// A table is between `<!-- generated: options LockOptions -->` and `<!-- end -->`. Beside `options` there are `errors`,
// `events`, `reasons`, `metrics`, `attributes`, `commands`, `commandOptions` and `exitCodes`. Its source is the JSDoc:
// `@allowed` and `@default` of an option, `@remedy` of an error, and `@see docs/guide/waiting.md#an-anchor`.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import GithubSlugger from 'github-slugger';
import { formatted } from '../format.mjs';
import { readCommands } from './commands.mjs';
import { readDeclarations, ROOT } from './declarations.mjs';
import { readMetrics } from './metrics.mjs';

const FOLDER = join(ROOT, 'docs/reference');
const KINDS = { histogram: 'histogram', counter: 'counter', upDownCounter: 'up-down counter', gauge: 'gauge' };
const TABLE =
  /<!-- generated: (options|errors|events|reasons|metrics|attributes|commands|commandOptions|exitCodes) ?(.*?) -->\n[^]*?<!-- end -->/g;

/** Keeps the formatter from aligning such a table: half of it would be spaces. */
const UNPADDED = '<!-- prettier-ignore -->';
/** The width of pages, as in .oxfmtrc.json. */
const WIDTH = 76;

/** The pages as they should be, and what the declarations leave out. */
export async function generateReference() {
  const pages = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.md'))
    .map((name) => ({ path: join(FOLDER, name), text: readFileSync(join(FOLDER, name), 'utf8') }));
  const tables = pages.flatMap(({ text }) => [...text.matchAll(TABLE)].map(([, kind, query]) => ({ kind, query })));
  const declarations = readDeclarations(tables.flatMap(({ kind, query }) => (kind === 'options' ? [query] : [])));
  const metrics = await readMetrics();
  const program = readCommands();
  const renderers = {
    options: (query) => optionsTable(declarations.options.get(query)),
    errors: () => errorsTable(declarations.errors),
    events: () => eventsTable(declarations.events),
    metrics: () => metricsTable(metrics),
    attributes: (query) => table(['Attribute', 'Description'], declarations.membersOf(query).map(attributeRow)),
    commands: () => program.commands.map(commandSection).join('\n\n'),
    commandOptions: () => commandOptionsTable(program.commonOptions),
    exitCodes: () =>
      table(
        ['Code', 'Meaning'],
        program.exitCodes.map(({ code: number, summary }) => [`${number}`, summary]),
      ),
    reasons: (query) => table(['`reason`', 'When'], declarations.reasonsOf(query).map(reasonRow)),
  };
  const generated = await Promise.all(
    pages.map(async ({ path, text }) => {
      const fresh = text.replace(TABLE, (_, kind, query) => {
        const marker = `<!-- generated: ${[kind, query].filter(Boolean).join(' ')} -->`;
        return [marker, '', renderers[kind](query), '', '<!-- end -->'].join('\n');
      });
      return { path, text, fresh: await formatted(path, fresh, { printWidth: WIDTH }) };
    }),
  );
  // An options type that shares its options with another one is in no table of its own, and has to be named.
  const text = pages.map((page) => page.text).join('\n');
  const unnamed = declarations.optionTypes.filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
  const gaps = [...unnamed.map((name) => `no page of docs/reference names ${name}`), ...gapsIn(declarations, tables)];
  return { pages: generated, declarations, metrics, gaps };
}

const WRITTEN_AS = { allowed: '@allowed', default: '@default', text: 'description', remedy: '@remedy' };

/** @returns {string[]} what a reader would miss, and where to add it */
function gapsIn({ options, errors, events, uncovered }, tables) {
  const kinds = new Set(tables.map(({ kind }) => kind));
  const lacking = (owner, name, item, fields) =>
    fields
      .filter((field) => item[field] === '')
      .map((field) => `${owner} ${name} has no ${WRITTEN_AS[field]} in its JSDoc in lib/`);
  return [
    ...['errors', 'events', 'metrics', 'attributes', 'commands', 'commandOptions', 'exitCodes']
      .filter((kind) => !kinds.has(kind))
      .map((kind) => `no page of docs/reference has <!-- generated: ${kind} -->`),
    ...uncovered.map(
      (option) => `the option ${option} is in no table: add <!-- generated: options … --> to a page of docs/reference`,
    ),
    ...[...options].flatMap(([query, list]) =>
      list.flatMap((option) => lacking(query, option.name, option, ['allowed', 'default', 'text'])),
    ),
    ...errors.flatMap((error) => lacking('the error', error.name, error, ['text', 'remedy'])),
    ...events.flatMap((event) => lacking('the event', event.type, event, ['text'])),
  ];
}

function optionsTable(options) {
  return table(
    ['Option', 'Allowed', 'Default', 'Description'],
    options.map((option) => [
      code(option.name),
      option.allowed,
      isLiteral(option.default) ? code(option.default) : option.default,
      withLinks(option),
    ]),
  );
}

function errorsTable(errors) {
  return table(
    ['`code`', 'Class', 'Properties', 'When', 'What to do'],
    errors.map((error) => [
      code(error.code),
      code(error.name),
      error.fields.map(code).join(', '),
      withLinks(error),
      error.remedy,
    ]),
  );
}

/** Fields that many events have: the page lists them once, and each row names the group. */
const COMMON_FIELDS = {
  lease: ['fencingToken', 'resource', 'mode', 'group', 'service'],
  lock: ['resource', 'mode', 'group', 'service'],
  tick: ['group', 'job', 'tick', 'service'],
  leadership: ['group', 'leadership', 'resource', 'service'],
};

function eventsTable(events) {
  const shared = Object.entries(COMMON_FIELDS);
  const withOf = (fields) => {
    const [name, common] = shared.find(([, each]) => each.every((field) => fields.includes(field))) ?? [];
    const own = fields.filter((field) => !common?.includes(field)).map(code);
    return [...(name === undefined ? [] : [`_${name}_`]), ...own].join(', ');
  };
  const lines = shared.map(([name, fields]) => `- _${name}_: ${fields.map(code).join(', ')}`);
  const rows = events.map(({ type, fields, text }) => [code(type), withOf(fields), text]);
  return [...lines, '', table(['`type`', 'Fields', 'Meaning'], rows)].join('\n');
}

function reasonRow({ name, text }) {
  return [code(`'${name}'`), text];
}

function metricsTable({ LOCK_METRICS, prometheusNameOf }) {
  return table(
    ['Metric', 'Name in Prometheus', 'Kind', 'Unit', 'Attributes', 'Description'],
    Object.entries(LOCK_METRICS).map(([name, metric]) => [
      code(name),
      code(prometheusNameOf(name)),
      KINDS[metric.kind],
      code(metric.unit),
      metric.attributes.map((attribute) => attributeOf(attribute, metric.values?.[attribute])).join(', '),
      metric.description,
    ]),
  );
}

function commandSection({ name, usage, summary, details, options, examples }) {
  const parts = [`## ${name}`, withFlags(summary), fenced(usage), withFlags(details.join(' '))];
  if (options.length > 0) parts.push(commandOptionsTable(options));
  // An example without arguments is left out: the usage shows it.
  const others = examples.filter((example) => !example.endsWith(` ${name}`));
  if (others.length > 0) parts.push(fenced(others.join('\n')));
  return parts.filter((part) => part !== '').join('\n\n');
}

/** Formats options as code. The help of the command line has them as plain text. */
function withFlags(text) {
  return text.replace(/`[^`]*`|--[a-z][a-z-]*/g, (part) => (part.startsWith('`') ? part : code(part)));
}

function commandOptionsTable(options) {
  return table(
    ['Option', 'Description'],
    options.map(({ text, summary }) => [code(text), withFlags(summary)]),
  );
}

function fenced(text) {
  return ['```sh', text, '```'].join('\n');
}

function attributeOf(name, values) {
  return values === undefined ? code(name) : `${code(name)} (${values.map(code).join(', ')})`;
}

function attributeRow({ value, text }) {
  return [code(value), text];
}

function table(header, rows) {
  const lines = [header, header.map(() => '---'), ...rows.map((row) => row.map((cell) => cell.replace(/\|/g, '\\|')))];
  return [UNPADDED, '', ...lines.map((cells) => `| ${cells.join(' | ')} |`)].join('\n');
}

function code(text) {
  return `\`${text}\``;
}

function isLiteral(value) {
  return /^('.*'|[\d.]+|true|false|Infinity)$/.test(value);
}

function withLinks({ text, see }) {
  return see.length === 0 ? text : `${text} See ${see.map(linkTo).join(', ')}.`;
}

/** Named by the heading that it leads to, up to a colon: the words behind it are there to be found. */
function linkTo(page) {
  if (!page.startsWith('docs/')) throw new Error(`@see ${page}: not a page of docs/`);
  const [file, anchor] = page.split('#');
  const slugger = new GithubSlugger();
  const headings = [...readFileSync(join(ROOT, file), 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading);
  const heading = anchor === undefined ? headings[0] : headings.find((text) => slugger.slug(text) === anchor);
  if (heading === undefined) throw new Error(`@see ${page}: there is no such heading`);
  const name = heading.replace(/: .*$/, '');
  return `[${name}](${relative(FOLDER, join(ROOT, file))}${anchor === undefined ? '' : `#${anchor}`})`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { pages, gaps } = await generateReference();
  const changed = pages.filter(({ text, fresh }) => text !== fresh);
  for (const { path, fresh } of changed) writeFileSync(path, fresh);
  console.log(
    changed.length > 0
      ? `Updated ${changed.map(({ path }) => relative(ROOT, path)).join(', ')}.`
      : 'The tables of docs/reference were up to date.',
  );
  for (const gap of gaps) console.error(`Missing: ${gap}.`);
  process.exitCode = gaps.length > 0 ? 1 : 0;
}
