// Infers the kind of value that an expression of a script has, if its text shows it.

/**
 * 'maybe' is nil or something that is no boolean, so it is true unless it is nil.
 *
 * @typedef {'number' | 'string' | 'boolean' | 'table' | 'maybe' | 'any'} Kind
 */

const COUNTS = new Set('DEL EXISTS PTTL PEXPIRE HSET HDEL HLEN ZADD ZREM ZCARD ZCOUNT INCRBY'.split(' '));
const LISTS = new Set('HMGET HGETALL HSCAN HRANDFIELD ZRANGE LRANGE TIME'.split(' '));
const OF_FUNCTIONS = {
  'string.sub': 'string',
  'string.rep': 'string',
  'string.format': 'string',
  'string.find': 'boolean',
  'string.match': 'maybe',
  'string.gsub': 'string',
  'table.concat': 'string',
  'math.floor': 'number',
  'math.max': 'number',
  'math.min': 'number',
  'redis.sha1hex': 'string',
  'redis.call': 'maybe',
  'redis.pcall': 'maybe',
  tonumber: 'maybe',
  tostring: 'string',
  type: 'string',
  pcall: 'boolean',
  next: 'maybe',
  select: 'any',
};
const COMPARISONS = new Set(['==', '~=', '<', '>', '<=', '>=']);

/** @returns {Kind} */
export function kindOf(node) {
  switch (node?.type) {
    case 'NumericLiteral':
      return 'number';
    case 'StringLiteral':
      return 'string';
    case 'BooleanLiteral':
      return 'boolean';
    case 'TableConstructorExpression':
    case 'FunctionDeclaration':
      return 'table';
    case 'NilLiteral':
    case 'Captured':
      return 'maybe';
    case 'UnaryExpression':
      return node.operator === 'not' ? 'boolean' : 'number';
    case 'BinaryExpression':
      if (COMPARISONS.has(node.operator)) return 'boolean';
      return node.operator === '..' ? 'string' : 'number';
    case 'LogicalExpression':
      return kindOfLogical(node);
    case 'IndexExpression':
      return kindOf(node.index) === 'number' ? 'maybe' : 'any';
    case 'MemberExpression':
      return node.base.name === 'math' ? 'number' : 'any';
    case 'Identifier':
      return kindOfVariable(node.variable);
    case 'Later':
      return kindOfCall(node.call, node.index);
    case 'CallExpression':
      return kindOfCall(node, 0);
    default:
      return 'any';
  }
}

function kindOfLogical({ operator, left, right }) {
  const [first, second] = [kindOf(left), kindOf(right)];
  if (operator === 'or' && first === 'maybe') {
    const isNumber = second === 'number' && left.base?.name === 'tonumber';
    if (isNumber) return 'number';
    return second === 'boolean' || second === 'any' ? 'any' : 'maybe';
  }
  if (operator === 'or' && isSure(first)) return first;
  return operator === 'and' && first === 'maybe' && second !== 'boolean' && second !== 'any'
    ? 'maybe'
    : merged([first, second]);
}

/** Returns true if a value of this kind is always true in Lua. */
export function isSure(kind) {
  return kind === 'number' || kind === 'string' || kind === 'table';
}

function kindOfVariable(variable) {
  if (!variable) return 'any';
  if (variable.kind) return variable.kind;
  variable.kind = 'any'; // while it is looked for
  variable.kind = merged(variable.values.map((value) => (value ? kindOf(value) : 'any')));
  return variable.kind;
}

function kindOfCall(call, position) {
  const name = nameOf(call.base);
  if (position > 0) return name === 'string.match' || name === 'string.gsub' ? 'maybe' : 'any';
  const command = name?.startsWith('redis.') && call.arguments[0]?.value;
  if (name === 'redis.call' && COUNTS.has(command)) return 'number';
  if (name === 'redis.call' && LISTS.has(command)) return 'table';
  if (name && Object.hasOwn(OF_FUNCTIONS, name)) return OF_FUNCTIONS[name];
  const { fn } = call.base.variable ?? {};
  return fn ? kindOfFunction(fn) : 'any';
}

function kindOfFunction(fn) {
  const returned = returnsOf(fn.body).map(({ arguments: [first] }) => (first ? kindOf(first) : 'maybe'));
  if (fn.body.at(-1)?.type !== 'ReturnStatement') returned.push('maybe');
  return merged(returned);
}

/** @returns {Kind} */
function merged(kinds) {
  const all = new Set(kinds);
  if (all.size === 1) return kinds[0];
  return all.size === 0 || all.has('any') || all.has('boolean') ? 'any' : 'maybe';
}

/** The name of what is called, such as string.match. */
export function nameOf(base) {
  if (base.type === 'Identifier') return base.variable ? undefined : base.name;
  return base.type === 'MemberExpression' && base.base.type === 'Identifier' && !base.base.variable
    ? `${base.base.name}.${base.identifier.name}`
    : undefined;
}

/** Returns the return statements of a function, without nested functions. */
export function returnsOf(statements) {
  return statements.flatMap((node) => {
    if (node.type === 'ReturnStatement') return [node];
    if (node.type === 'IfStatement') return node.clauses.flatMap(({ body }) => returnsOf(body));
    return node.type.startsWith('For') || node.type === 'WhileStatement' ? returnsOf(node.body) : [];
  });
}

/** Returns true if a call returns a list of values here. */
export function isMulti(node) {
  if (node?.type !== 'CallExpression' || node.inParens) return false;
  const { fn } = node.base.variable ?? {};
  return fn ? returnsSeveral(fn) : false;
}

export function returnsSeveral(fn) {
  fn.isMulti ??= returnsOf(fn.body).some(
    ({ arguments: values }) => values.length > 1 || (values.length === 1 && isMulti(values[0])),
  );
  return fn.isMulti;
}
