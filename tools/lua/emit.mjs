// Writes the statements of a script in TypeScript.
import { Expressions } from './expressions.mjs';
import { isMulti, kindOf, nameOf, returnsSeveral } from './kinds.mjs';
import { regexOf } from './patterns.mjs';

export class Emitter extends Expressions {
  block(statements) {
    return statements.map((node) => this.#statement(node)).join('\n');
  }

  /** The variables that statements declare for the module, and their assignments. */
  beginning(statements) {
    const variables = [];
    const code = statements.map((node) => {
      if (node.type !== 'LocalStatement') return this.#statement(node);
      return node.variables
        .map(({ variable }, index) => {
          variables.push(variable.name);
          const pattern = node.init[index];
          return `${variable.name} = ${variable.isPattern ? regexOf(pattern.value) : this.value(pattern)};`;
        })
        .join('\n');
    });
    return { variables, code: code.join('\n') };
  }

  #statement(node) {
    switch (node.type) {
      case 'LocalStatement':
        return this.#local(node);
      case 'AssignmentStatement':
        return this.#assignment(node);
      case 'CallStatement':
        return `${nameOf(node.expression.base) === 'pcall' ? this.protected(node.expression) : this.called(node.expression)};`;
      case 'FunctionDeclaration':
        return this.functionOf(node, `function ${node.identifier.variable.name}`);
      case 'IfStatement':
        return node.clauses
          .map(({ type, condition, body }) => {
            const head = { IfClause: 'if', ElseifClause: 'else if', ElseClause: 'else' }[type];
            return `${head} ${condition ? `(${this.condition(condition)}) ` : ''}{\n${this.block(body)}\n}`;
          })
          .join(' ');
      case 'WhileStatement':
        return `while (${this.condition(node.condition)}) {\n${this.block(node.body)}\n}`;
      case 'ForNumericStatement': {
        const { name } = node.variable.variable;
        const step = node.step ? `${name} += ${this.value(node.step)}` : `${name}++`;
        return `for (let ${name} = ${this.value(node.start)}; ${name} <= ${this.value(node.end)}; ${step}) {\n${this.block(node.body)}\n}`;
      }
      case 'ForGenericStatement':
        return this.#forEach(node);
      case 'ReturnStatement':
        return this.#returned(node.arguments);
      case 'BreakStatement':
        return 'break;';
      default:
        throw new Error(`not understood: ${node.type}`);
    }
  }

  #local({ variables, init }) {
    const several = init.at(-1);
    const isSeveral = variables.length > init.length && several?.type === 'CallExpression' && !several.inParens;
    const single = variables.slice(0, isSeveral ? init.length - 1 : variables.length);
    const lines = single.map(({ variable }, index) => {
      if (!variable) return '';
      const value = init[index];
      if (!value || value.type === 'NilLiteral') return `let ${variable.name}: Value;`;
      const isEmpty = value.type === 'TableConstructorExpression' && value.fields.length === 0;
      const code = isEmpty && variable.indexes.some((index) => kindOf(index) !== 'number') ? '{}' : this.value(value);
      const isPlain = ['number', 'string', 'boolean'].includes(kindOf(value)) && !variable.isAssigned;
      const type = isPlain ? '' : ': Value';
      return `${variable.isAssigned ? 'let' : 'const'} ${variable.name}${type} = ${code};`;
    });
    if (isSeveral) {
      const names = variables.slice(init.length - 1).map(({ variable }) => variable?.name ?? '');
      const isAssigned = variables.some(({ variable }) => variable?.isAssigned);
      lines.push(`${isAssigned ? 'let' : 'const'} [${names.join(', ')}]: Value = ${this.list(several)};`);
    }
    return lines.filter(Boolean).join('\n');
  }

  #assignment({ variables, init }) {
    const pushed = this.#pushed(variables, init);
    if (pushed) return pushed;
    if (variables.length === 1) return `${this.value(variables[0])} = ${this.value(init[0])};`;
    const targets = `[${variables.map((each) => this.value(each)).join(', ')}]`;
    if (init.length === 1 && init[0].type === 'CallExpression') return `${targets} = ${this.list(init[0])};`;
    const isConstant = init.every(({ type }) => type.endsWith('Literal'));
    if (isConstant)
      return variables.map((each, index) => `${this.value(each)} = ${this.value(init[index])};`).join('\n');
    if (variables.length !== init.length) throw new Error('an assignment with another number of values');
    return `${targets} = [${init.map((each) => this.value(each)).join(', ')}];`;
  }

  /** list[#list + 1] = value, and list[#list] = nil */
  #pushed(variables, init) {
    const isLength = (node, base) =>
      node.type === 'UnaryExpression' && node.operator === '#' && node.argument.variable === base.variable;
    const isNext = ({ type, base, index }, at) =>
      type === 'IndexExpression' &&
      index.operator === '+' &&
      isLength(index.left, base) &&
      index.right.value === at + 1;
    const [{ base, index }] = variables;
    if (variables.every(isNext)) return `${this.value(base)}.push(${init.map((each) => this.value(each)).join(', ')});`;
    if (index?.type !== 'UnaryExpression' || !isLength(index, base)) return undefined;
    // Beside another assignment, which is not of the same table.
    const [, ...others] = variables;
    const rest = others.length ? `\n${this.#assignment({ variables: others, init: init.slice(1) })}` : '';
    return `${this.value(base)}.pop();${rest}`;
  }

  #forEach({ variables, iterators: [call], body }) {
    const [first, second] = variables.map(({ variable }) => variable?.name);
    const name = nameOf(call.base);
    const inside = this.block(body);
    if (name === 'ipairs') {
      const list = this.operand(call.arguments[0]);
      if (first === undefined) return `for (const ${second} of ${list}) {\n${inside}\n}`;
      return `for (const [at, ${second}] of ${list}.entries()) {\nconst ${first} = at + 1;\n${inside}\n}`;
    }
    if (name === 'string.gmatch') {
      const regex = regexOf(call.arguments[1].value);
      return `for (const [, ${[first, second].filter(Boolean).join(', ')}] of ${this.operand(call.arguments[0])}.matchAll(${regex}g)) {\n${inside}\n}`;
    }
    throw new Error(`not understood: for ... in ${name}`);
  }

  #returned(values) {
    const isSeveral = this.fn && returnsSeveral(this.fn);
    if (!isSeveral) return values.length ? `return ${this.value(values[0])};` : 'return;';
    if (values.length === 1 && isMulti(values[0])) return `return ${this.called(values[0])};`;
    const last = values.at(-1);
    const list = values.map((each) => this.value(each));
    if (isMulti(last)) list[list.length - 1] = `...${this.called(last)}`;
    return `return [${list.join(', ')}];`;
  }
}
