// Writes the expressions of a script in TypeScript. What Lua does differently is in lib/memory/lua.ts.
import { isMulti, isSure, kindOf, nameOf, returnsSeveral } from './kinds.mjs';
import { partsOf, quoted, regexOf, template } from './patterns.mjs';

const BINARY = {
  '==': '===',
  '~=': '!==',
  '<': '<',
  '>': '>',
  '<=': '<=',
  '>=': '>=',
  '-': '-',
  '*': '*',
  '/': '/',
  '%': '%',
};

/** The maximum number of arguments of a function, where the standard has no limit. */
const MAX_ARGUMENTS = {
  'string.match': 3,
  'string.find': 4,
  'string.sub': 3,
  'string.gsub': 3,
  'table.concat': 3,
  tonumber: 1,
  unpack: 3,
};

export class Expressions {
  /** The function that is written. */
  fn;

  functionOf(node, head) {
    const outer = this.fn;
    this.fn = node;
    const parameters = node.parameters.map((each) => {
      if (each.type === 'VarargLiteral') return '...rest: Value[]';
      return `${each.variable.name}?: Value`;
    });
    const end = returnsSeveral(node) && node.body.at(-1)?.type !== 'ReturnStatement' ? '\nreturn [];' : '';
    const code = `${head}(${parameters.join(', ')}): Value {\n${this.block(node.body)}${end}\n}`;
    this.fn = outer;
    return code;
  }

  /** All values of a call, as a list. */
  list(node) {
    const name = nameOf(node.base);
    if (isMulti(node)) return this.called(node);
    const values = node.arguments.map((each) => this.value(each));
    if (name === 'string.match') return `lua.captures(${this.matched(node)})`;
    if (name === 'string.gsub') return `lua.replaced(${values[0]}, ${regexOf(node.arguments[1].value)}, ${values[2]})`;
    if (name === 'pcall') return this.protected(node);
    if (name === 'unpack') return this.unpacked(node);
    return `[${this.called(node)}]`;
  }

  /** unpack(list), or unpack(list, from, to) */
  unpacked({ arguments: [list, from, to] }) {
    const end = to ? `, ${this.value(to)}` : '';
    return `${this.value(list)}${from ? `.slice(${this.zeroBased(from)}${end})` : ''}`;
  }

  protected({ arguments: [fn, ...values] }) {
    if (fn.type === 'FunctionDeclaration') {
      const code = this.functionOf(fn, '').replace(/^\(\): Value/, '() =>');
      return `lua.attempt(${code})`;
    }
    const call = `${this.value(fn)}(${values.map((each) => this.value(each)).join(', ')})`;
    return `lua.attempt(() => ${returnsSeveral(fn.variable.fn) ? call : `[${call}]`})`;
  }

  /** One value. */
  value(node) {
    const { type } = node;
    switch (type) {
      case 'NumericLiteral':
        return node.raw;
      case 'StringLiteral':
        return quoted(node.value);
      case 'BooleanLiteral':
        return String(node.value);
      case 'NilLiteral':
        return 'undefined';
      case 'VarargLiteral':
        return '...rest';
      case 'Identifier':
        return node.variable?.name ?? node.name;
      case 'FunctionDeclaration':
        return this.functionOf(node, '').replace(/^(\(.*?\): Value)/, '$1 =>');
      case 'TableConstructorExpression':
        return this.table(node);
      case 'MemberExpression':
        return nameOf(node) === 'math.huge' ? 'Infinity' : `${this.value(node.base)}.${node.identifier.name}`;
      case 'IndexExpression':
        return this.indexed(node);
      case 'UnaryExpression':
        if (node.operator === 'not') return this.condition(node);
        if (node.operator === '#') return `${this.operand(node.argument)}.length`;
        return `-${this.operand(node.argument)}`;
      case 'BinaryExpression':
        return this.binary(node);
      case 'LogicalExpression':
        return this.logical(node);
      case 'CallExpression':
        if (isMulti({ ...node, inParens: false })) return `${this.called(node)}[0]`;
        return this.called(node);
      default:
        throw new Error(`not understood: ${type}`);
    }
  }

  operand(node) {
    const code = this.value(node);
    const isSimple = ['BinaryExpression', 'LogicalExpression', 'UnaryExpression'].includes(node.type);
    return isSimple && !code.endsWith('.length') && !code.startsWith('`') ? `(${code})` : code;
  }

  table({ fields }) {
    if (fields.every(({ type }) => type === 'TableValue')) {
      const values = fields.map(({ value }, index) => {
        if (index === fields.length - 1 && value.type === 'CallExpression' && isMulti(value))
          return `...${this.called(value)}`;
        return this.value(value);
      });
      return `[${values.join(', ')}]`;
    }
    const members = fields.map(({ key, value }) => {
      const code = this.value(value);
      return key.name === code ? code : `${key.name}: ${code}`;
    });
    return `{ ${members.join(', ')} }`;
  }

  indexed({ base, index }) {
    const list = this.operand(base);
    if (index.type === 'NumericLiteral') return `${list}[${index.value - 1}]`;
    if (index.type === 'UnaryExpression' && index.operator === '#') return `${list}[${this.value(index)} - 1]`;
    if (kindOf(index) !== 'number') return `${list}[${this.value(index)}]`;
    if (index.operator === '+' && index.right.type === 'NumericLiteral') {
      const more = index.right.value - 1;
      return `${list}[${this.value(index.left)}${more === 0 ? '' : ` + ${more}`}]`;
    }
    if (index.operator === '-' && index.right.type === 'NumericLiteral')
      return `${list}[${this.value(index.left)} - ${index.right.value + 1}]`;
    return `${list}[${this.operand(index)} - 1]`;
  }

  binary(node) {
    const { operator, left, right } = node;
    if (operator === '..') return template(this.joined(node));
    if (operator === '+') return `${this.addend(left)} + ${this.addend(right)}`;
    if (isType(left) && right.type === 'StringLiteral') {
      const name = { table: 'object', string: 'string', number: 'number' }[right.value];
      return `typeof ${this.operand(left.arguments[0])} ${BINARY[operator]} '${name}'`;
    }
    // A search that finds something is a boolean here.
    if (operator === '~=' && right.type === 'NilLiteral' && kindOf(left) === 'boolean') return this.value(left);
    return `${this.operand(left)} ${BINARY[operator]} ${this.operand(right)}`;
  }

  /** Texts are numbers where they are added. */
  addend(node) {
    return kindOf(node) === 'number' ? this.operand(node) : `Number(${this.value(node)})`;
  }

  /** The parts of a text. */
  joined(node) {
    if (node.type === 'BinaryExpression' && node.operator === '..')
      return [...this.joined(node.left), ...this.joined(node.right)];
    if (node.type === 'StringLiteral') return [node.value];
    if (nameOf(node.base ?? {}) === 'string.format') return this.format(node);
    return [{ code: this.value(node) }];
  }

  format({ arguments: [format, ...values] }) {
    return partsOf(
      format.value,
      values.map((each) => this.value(each)),
    );
  }

  logical({ operator, left, right }) {
    const kind = kindOf(left);
    if (operator === 'and') {
      if (kind === 'boolean') return `${this.grouped(left)} && ${this.grouped(right)}`;
      if (isSure(kind)) return this.value(right);
      // No code checks whether it is nil or false.
      const otherwise = kind === 'maybe' || left.type === 'LogicalExpression' ? 'undefined' : this.simple(left);
      return `(${this.condition(left)}) ? ${this.value(right)} : ${otherwise}`;
    }
    if (left.type === 'LogicalExpression' && left.operator === 'and' && isSure(kindOf(left.right)))
      return `(${this.condition(left.left)}) ? ${this.value(left.right)} : ${this.value(right)}`;
    if (kind === 'boolean') return `${this.grouped(left)} || ${this.grouped(right)}`;
    if (isSure(kind)) return this.value(left);
    if (kind === 'maybe') return `${this.grouped(left)} ?? ${this.grouped(right)}`;
    if (left.type === 'LogicalExpression' && left.operator === 'and') {
      const taken = kindOf(left.right);
      const value = `(${this.condition(left.left)}) ? ${this.value(left.right)} : undefined`;
      const code = this.value(left.right);
      if (isCheap(code)) return `(${this.condition(left)}) ? ${code} : ${this.value(right)}`;
      if (taken === 'maybe') return `(${value}) ?? ${this.grouped(right)}`;
      return `lua.firstTruthy(${value}, ${this.simple(right)})`;
    }
    const code = this.value(left);
    if (!isCheap(code)) return `lua.firstTruthy(${code}, ${this.simple(right)})`;
    return `lua.is(${code}) ? ${code} : ${this.value(right)}`;
  }

  grouped(node) {
    return node.type === 'LogicalExpression' ? `(${this.value(node)})` : this.operand(node);
  }

  /** Returns code that may be repeated, or evaluated without need. */
  simple(node) {
    const code = this.value(node);
    if (!isCheap(code)) throw new Error(`too much to write twice: ${code}`);
    return code;
  }

  condition(node) {
    if (node.type === 'UnaryExpression' && node.operator === 'not') return this.negated(node.argument);
    if (node.type === 'LogicalExpression') {
      const parts = [node.left, node.right].map((each) => {
        const code = this.condition(each);
        return each.type === 'LogicalExpression' && each.operator !== node.operator ? `(${code})` : code;
      });
      return parts.join(node.operator === 'and' ? ' && ' : ' || ');
    }
    const kind = kindOf(node);
    if (kind === 'boolean') return this.value(node);
    return kind === 'maybe' ? `${this.operand(node)} !== undefined` : `lua.is(${this.value(node)})`;
  }

  negated(node) {
    if (node.type === 'LogicalExpression') return `!(${this.condition(node)})`;
    const kind = kindOf(node);
    if (kind === 'boolean')
      return node.type === 'CallExpression' || node.type === 'Identifier'
        ? `!${this.value(node)}`
        : `!(${this.value(node)})`;
    return kind === 'maybe' ? `${this.operand(node)} === undefined` : `!lua.is(${this.value(node)})`;
  }

  matched({ arguments: [text, pattern, from] }) {
    const code = this.operand(text);
    const begin = from ? `.slice(${this.zeroBased(from)})` : '';
    const isCalled = begin && text.type === 'LogicalExpression';
    return `${isCalled ? `(${code})` : this.value(text)}${begin}, ${this.pattern(pattern)}`;
  }

  pattern(node) {
    return node.type === 'StringLiteral' ? regexOf(node.value) : this.value(node);
  }

  /** Converts a position that counts from 1. */
  zeroBased(node) {
    if (node.type === 'NumericLiteral') return String(node.value - 1);
    if (node.operator === '+' && node.right.value === 1) return this.value(node.left);
    return `${this.operand(node)} - 1`;
  }

  called(node) {
    const name = nameOf(node.base);
    const values = node.arguments.map((each) => this.value(each));
    if (node.arguments.length > MAX_ARGUMENTS[name])
      throw new Error(`not understood: ${name}() with ${node.arguments.length} arguments`);
    switch (name) {
      case undefined:
        return `${this.value(node.base)}(${values.join(', ')})`;
      case 'redis.call':
        return this.command(node);
      case 'redis.pcall':
        return `lua.tried(() => ${this.command(node)})`;
      case 'redis.sha1hex':
        return `redis.sha1hex(${values[0]})`;
      case 'string.match':
        return `lua.match(${this.matched(node)})`;
      case 'string.find':
        if (node.arguments.length === 4) return `${this.operand(node.arguments[0])}.includes(${values[1]})`;
        return `${this.pattern(node.arguments[1])}.test(${values[0]})`;
      case 'string.sub':
        return this.sub(node.arguments);
      case 'string.rep':
        return `${this.operand(node.arguments[0])}.repeat(${values[1]})`;
      case 'string.format':
        return template(this.format(node));
      case 'math.floor':
      case 'math.max':
      case 'math.min':
        return `Math.${name.slice(5)}(${values.join(', ')})`;
      case 'table.concat':
        return `${values[0]}${values[2] ? `.slice(${values[2]} - 1)` : ''}.join(${values[1]})`;
      case 'tonumber':
        return `lua.number(${values[0]})`;
      case 'tostring':
        return `String(${values[0]})`;
      case 'unpack':
        return `...${this.unpacked(node)}`;
      case 'next':
        return `Object.keys(${values[0]})[0]`;
      case 'select':
        return `${this.list(node.arguments[1])}[${node.arguments[0].value - 1}]`;
      case 'pcall':
        return `${this.protected(node)}[0]`;
      case 'string.gsub':
        return `${this.list(node)}[0]`;
      default:
        throw new Error(`not understood: ${name}()`);
    }
  }

  command({ arguments: [name, ...values] }) {
    if (name.type !== 'StringLiteral') throw new Error('a command without a name');
    return `redis.${name.value.toLowerCase()}(${values.map((each) => this.value(each)).join(', ')})`;
  }

  sub([text, from, to]) {
    const code = this.operand(text);
    const end =
      to === undefined
        ? ''
        : to.type === 'UnaryExpression' && to.operator === '-'
          ? `, -${to.argument.value - 1}`
          : `, ${this.value(to)}`;
    if (from.type === 'UnaryExpression') return `${code}.slice(${this.value(from)}${end})`;
    return `${code}.slice(${this.zeroBased(from)}${end})`;
  }
}

/** Returns true for code without a call. */
function isCheap(code) {
  return !/\w\(/.test(code.replace(/lua\.is\(/g, ''));
}

function isType(node) {
  return node.type === 'CallExpression' && nameOf(node.base) === 'type';
}
