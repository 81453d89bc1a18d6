// Finds out what each name in a script means, what is assigned to it, and how it is called in JavaScript.
//
// Lua lets a block name the same thing twice, and use a name before the block declares its own: there, the second one gets
// another name.

/**
 * @typedef {object} Variable
 * @property {string} name in JavaScript
 * @property {boolean} isAssigned after its declaration
 * @property {boolean} isPattern whether it is used as a pattern
 * @property {object[]} indexes by which it is indexed
 * @property {(object | undefined)[]} values what is assigned to it; undefined for what is not known
 * @property {object} [fn] the function that it is
 */

const RESERVED = new Set([
  'arguments',
  'await',
  'case',
  'class',
  'const',
  'default',
  'delete',
  'enum',
  'eval',
  'export',
  'new',
  'redis',
  'lua',
  'this',
  'var',
  'void',
  'with',
  'yield',
]);

export class Scope {
  /** @type {Map<string, Variable>} */
  #variables = new Map();
  #taken = new Set();
  /** Names of scopes further out that were used here. */
  #used = new Set();

  /** @param {Scope} [parent] @param {Scope} [avoids] a scope whose names are not used again here */
  constructor(parent, avoids) {
    this.parent = parent;
    this.avoids = avoids;
  }

  isTaken(name) {
    return this.#taken.has(name) || this.#used.has(name);
  }

  /** @returns {Variable} */
  declare(name, values) {
    let own = name;
    for (let count = 2; RESERVED.has(own) || this.isTaken(own) || this.avoids?.isTaken(own); count++)
      own = `${name}${count}`;
    const variable = { name: own, isAssigned: false, isPattern: false, indexes: [], values };
    this.#taken.add(own);
    this.#variables.set(name, variable);
    return variable;
  }

  /** @returns {Variable | undefined} nothing for a global name */
  find(name) {
    const passed = [];
    for (let scope = this; scope; scope = scope.parent) {
      const variable = scope.#variables.get(name);
      if (variable) {
        for (const each of passed) each.#used.add(variable.name);
        return variable;
      }
      passed.push(scope);
    }
    return undefined;
  }

  has(name) {
    return this.#variables.has(name);
  }
}

/** Sets `variable` of every identifier in these statements. */
export function resolveBlock(statements, scope) {
  for (const statement of statements) resolveStatement(statement, scope);
}

export function resolveStatement(node, scope) {
  const inside = (statements, inner = new Scope(scope)) => resolveBlock(statements, inner);
  const expressions = (list) => list.forEach((each) => resolve(each, scope));
  switch (node.type) {
    case 'LocalStatement':
      expressions(node.init);
      node.variables.forEach((identifier, index) => declare(identifier, scope, [valueAt(node.init, index)]));
      return;
    case 'AssignmentStatement':
      expressions(node.init);
      expressions(node.variables);
      node.variables.forEach((target, index) => {
        if (target.type !== 'Identifier') return;
        target.variable.isAssigned = true;
        target.variable.values.push(valueAt(node.init, index));
      });
      return;
    case 'CallStatement':
      return resolve(node.expression, scope);
    case 'FunctionDeclaration':
      return resolve(node, scope);
    case 'IfStatement':
      for (const clause of node.clauses) {
        if (clause.condition) resolve(clause.condition, scope);
        inside(clause.body);
      }
      return;
    case 'WhileStatement':
      resolve(node.condition, scope);
      return inside(node.body);
    case 'ForNumericStatement': {
      expressions([node.start, node.end, ...(node.step ? [node.step] : [])]);
      const inner = new Scope(scope);
      declare(node.variable, inner, [node.start]);
      return inside(node.body, inner);
    }
    case 'ForGenericStatement': {
      expressions(node.iterators);
      const inner = new Scope(scope);
      const isList = node.iterators[0].base?.name === 'ipairs';
      node.variables.forEach((identifier, index) =>
        declare(identifier, inner, [
          isList && index === 0 ? { type: 'NumericLiteral', value: 1 } : { type: 'Captured' },
        ]),
      );
      return inside(node.body, inner);
    }
    case 'ReturnStatement':
      return expressions(node.arguments);
    case 'BreakStatement':
      return;
    default:
      throw new Error(`not understood: ${node.type}`);
  }
}

function declare(identifier, scope, values) {
  identifier.variable = identifier.name === '_' ? undefined : scope.declare(identifier.name, values);
}

/** Returns the value of a name in a list. For a call that returns several values, the later ones are marked. */
function valueAt(init, index) {
  if (index < init.length - 1 || init.length > index) return init[index];
  const last = init.at(-1);
  return last?.type === 'CallExpression'
    ? { type: 'Later', call: last, index: index - init.length + 1 }
    : { type: 'NilLiteral' };
}

function resolve(node, scope) {
  switch (node.type) {
    case 'Identifier':
      node.variable = scope.find(node.name);
      return;
    case 'FunctionDeclaration': {
      if (node.identifier) {
        node.identifier.variable = scope.declare(node.identifier.name, [node]);
        node.identifier.variable.fn = node;
      }
      const inner = new Scope(scope);
      for (const parameter of node.parameters)
        if (parameter.type === 'Identifier') declare(parameter, inner, [undefined]);
      return resolveBlock(node.body, inner);
    }
    case 'TableConstructorExpression':
      for (const { key, value, type } of node.fields) {
        if (type === 'TableKey') resolve(key, scope);
        resolve(value, scope);
      }
      return;
    case 'BinaryExpression':
    case 'LogicalExpression':
      resolve(node.left, scope);
      return resolve(node.right, scope);
    case 'UnaryExpression':
      return resolve(node.argument, scope);
    case 'MemberExpression':
      return resolve(node.base, scope);
    case 'IndexExpression':
      resolve(node.base, scope);
      node.base.variable?.indexes.push(node.index);
      return resolve(node.index, scope);
    case 'CallExpression':
      resolve(node.base, scope);
      for (const each of node.arguments) resolve(each, scope);
      if (node.base.identifier && node.arguments[1]?.variable && ['match', 'find'].includes(node.base.identifier.name))
        node.arguments[1].variable.isPattern = true;
      return;
    default:
  }
}
