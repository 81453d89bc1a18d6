// Starts one application after another in one process: node boot-each.mjs <folder of the programs> <names and environments, as JSON>
// Prints of each, as JSON, what it printed, and the code with which its process would have ended.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, list] = process.argv.slice(2);
const results = [];
for (const { name, env = {} } of JSON.parse(list)) results.push({ name, ...(await bootAlone(name, env)) });
process.stdout.write(JSON.stringify(results), () => {
  // Other applications close their resources; one that cannot start leaves them to the end of its process.
  if (results.some(({ code }) => code !== 0)) process.exit();
});

async function bootAlone(name, env) {
  const before = { ...process.env };
  const { exit, abort } = process;
  const writes = [process.stdout, process.stderr].map((stream) => ({ stream, write: stream.write }));
  let output = '';
  let code = 0;
  Object.assign(process.env, env);
  for (const { stream } of writes) stream.write = (text) => (output += text);
  // Nest ends the process when an application cannot start.
  const end = (given = 1) => {
    code ||= given;
    throw new Error('the process would have ended');
  };
  Object.assign(process, { exit: end, abort: end });
  try {
    globalThis.booted = undefined;
    await import(pathToFileURL(join(folder, `${name}.js`)).href);
    await globalThis.booted;
  } catch (error) {
    // Prints it like Node does an uncaught error.
    if (code === 0) console.error(error);
    code ||= 1;
  } finally {
    Object.assign(process, { exit, abort });
    for (const { stream, write } of writes) stream.write = write;
    for (const added of Object.keys(env)) delete process.env[added];
    Object.assign(process.env, before);
  }
  return { code, output };
}
