// The program of tracing.slow.test.ts: Sentry has to patch Nest before it is imported.
import * as Sentry from '@sentry/nestjs';

const [connection] = process.argv.slice(2) as [string];
const begun: string[] = [];
const errors: (string | undefined)[] = [];
const checkIns: unknown[] = [];

const client = Sentry.init({
  dsn: 'https://key@sentry.invalid/1',
  tracesSampleRate: 1,
  transport: (options) => Sentry.createTransport(options, async () => ({ statusCode: 200 })),
  beforeSend: (event) => {
    errors.push(event.exception?.values?.[0]?.value);
    return null;
  },
})!;
client.on('spanStart', (span) => void begun.push(Sentry.spanToJSON(span).description ?? ''));
client.on('beforeEnvelope', ([, items]) => {
  for (const [{ type }, payload] of items) {
    if (type === 'check_in') checkIns.push(payload);
  }
});

const { runStories } = await import('./traced-app.js');
const { runJobs } = await import('./sentry-app.js');
const stories = await runStories({ connection, traced: Sentry.SentryTraced(), begun });
const jobs = await runJobs(connection);
// An error passes through the integrations, some of which read files, before it reaches beforeSend.
await Sentry.flush(10_000);
process.stdout.write(JSON.stringify({ stories, jobs, begun, errors, checkIns }));
await Sentry.close(0);
