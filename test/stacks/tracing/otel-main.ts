// The program of tracing.slow.test.ts: the instrumentations have to patch Nest and ioredis before they are imported.
import { createRequire } from 'node:module';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { NestInstrumentation } from '@opentelemetry/instrumentation-nestjs-core';
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base';

const [connection] = process.argv.slice(2) as [string];
const begun: string[] = [];
const ended: ReadableSpan[] = [];

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const processor: SpanProcessor = {
  onStart: ({ name }) => void begun.push(name),
  onEnd: (span) => void ended.push(span),
  forceFlush: async () => {},
  shutdown: async () => {},
};
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
registerInstrumentations({
  // Not the default: creates a span for each command, also for those outside of requests.
  instrumentations: [new NestInstrumentation(), new IORedisInstrumentation({ requireParentSpan: false })],
});
createRequire(import.meta.url)('ioredis');

const { Span } = await import('nestjs-otel');
const { runStories } = await import('./traced-app.js');
const { holdOverRenewals } = await import('./lock-spans.js');
const stories = await runStories({ connection, traced: Span(), begun });
const before = ended.length;
await holdOverRenewals(connection);
const spans = ended.slice(before).map((span) => ({
  name: span.name,
  id: span.spanContext().spanId,
  trace: span.spanContext().traceId,
  parent: span.parentSpanContext?.spanId,
}));
process.stdout.write(JSON.stringify({ stories, begun, ended: ended.length, spans }));
