// A process that works for one contestant: does the tasks it is sent, and ends with the process that forked it.
//   node worker.mjs <contestant>[:<call>] <redis url>
const [, , contestant, url] = process.argv;
const [file, call] = contestant.split(':');
const { connect } = await import(`../contestants/${file}.mjs`);
const clients = new Map();

/** The context of tasks: a way to connect, and a place for results that a later task needs. */
const world = {
  url,
  kept: new Map(),
  /** One client for each setting, made when it is first asked for. */
  client(tuning = {}) {
    const key = JSON.stringify(tuning);
    if (!clients.has(key)) clients.set(key, connect(url, call ? { ...tuning, call } : tuning));
    return clients.get(key);
  },
};

async function answer({ id, task, args }) {
  try {
    const { run } = await import(`../tasks/${task}.mjs`);
    process.send({ id, result: await run(world, args) });
  } catch (error) {
    const { message, name, code, option } = error;
    process.send({ id, error: { message, name, code, option } });
  }
}

process.on('message', (question) => void answer(question));
process.on('disconnect', () => process.exit());
// Ctrl-C reaches the whole group; the parent process decides when to end.
process.on('SIGINT', () => undefined);
