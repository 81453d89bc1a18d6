// Lua's patterns and formats in JavaScript.

const CLASSES = { d: '\\d', s: '\\s', S: '\\S', a: 'A-Za-z', w: 'A-Za-z0-9', u: 'A-Z' };

/** @param {string} pattern of Lua @returns {string} a regular expression, as it is written */
export function regexOf(pattern) {
  let [regex, isInSet] = ['', false];
  for (let at = 0; at < pattern.length; at++) {
    const letter = pattern[at];
    if (letter === '%') regex += classOf(pattern[++at], isInSet);
    else if (isInSet) {
      isInSet = letter !== ']';
      regex += letter;
    } else {
      isInSet = letter === '[';
      // At the beginning it is no quantifier.
      if (letter === '-') regex += /^\^?$/.test(regex) ? '-' : '*?';
      else regex += '{}|/'.includes(letter) ? `\\${letter}` : letter;
    }
  }
  return `/${regex.replaceAll('\n', '\\n')}/${/(^|[^\\])\./.test(regex) ? 's' : ''}`;
}

function classOf(letter, isInSet) {
  const known = CLASSES[letter];
  if (known === undefined && /\w/.test(letter)) throw new Error(`%${letter} of a pattern is not known`);
  if (known === undefined) return `\\${letter}`;
  return isInSet || known.startsWith('\\') ? known : `[${known}]`;
}

/**
 * The parts of a format: texts, and what becomes of each value.
 *
 * @param {string} format
 * @param {string[]} values in JavaScript
 * @returns {(string | { code: string })[]}
 */
export function partsOf(format, values) {
  const rest = [...values];
  return format.split(/(%\.?\d*[a-z])/).map((part) => {
    if (!part.startsWith('%')) return part;
    const value = rest.shift();
    const [, size, letter] = /^%(?:\.(\d+))?([a-z])$/.exec(part);
    if (letter === 'f' && size === '0') return { code: `lua.formatInteger(${value})` };
    if (letter === 's' && size) return { code: `lua.cut(${value}, ${size})` };
    if (letter === 's' || letter === 'd') return { code: value };
    throw new Error(`${part} of a format is not known`);
  });
}

export function quoted(text) {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
}

/** @param {(string | { code: string })[]} parts */
export function template(parts) {
  if (parts.every((part) => typeof part === 'string')) return quoted(parts.join(''));
  const filled = parts.filter((part) => part !== '');
  const [{ code }] = filled;
  if (filled.length === 1 && /^lua\.(formatInteger|cut)/.test(code)) return code;
  const text = filled.map((part) =>
    typeof part === 'string' ? part.replace(/[\\`]|\$\{/g, '\\$&').replaceAll('\n', '\\n') : `\${${part.code}}`,
  );
  return `\`${text.join('')}\``;
}
