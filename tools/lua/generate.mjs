// Makes the text of lib/redis/script/scripts.generated.ts, which holds the scripts for every module format and bundler.
import { basename } from 'node:path';
import { camelCase, isFragment, textOf } from './assemble.mjs';

/**
 * Each piece is written once, however many scripts it is part of: written out, the scripts would be four times as long.
 *
 * @param {Map<string, import('./assemble.mjs').Piece[]>} scripts
 */
export function generate(scripts) {
  const constants = new Map();
  const entries = [...scripts].map(([script, pieces]) => {
    const names = pieces.map(({ file, lines }, index) => {
      const position = pieces.slice(0, index + 1).filter((piece) => piece.file === file).length;
      const name =
        camelCase(basename(file, '.lua')) + (isFragment(file) ? '' : 'Script') + (position > 1 ? position : '');
      constants.set(name, `// ${file}\nconst ${name} = ${quoted(textOf(lines))};\n`);
      return name;
    });
    return `  ${camelCase(script)}: [${names.join(', ')}].join('\\n'),\n`;
  });
  return [
    '// Written by `npm run lua` from the .lua files in lib/. Change them.\n',
    ...constants.values(),
    `/** The text of each script. */\nexport const SCRIPT_TEXTS = {\n${entries.join('')}} as const;\n`,
  ].join('\n');
}

function quoted(text) {
  return `\`${text.replace(/[\\`]|\$\{/g, '\\$&')}\``;
}
