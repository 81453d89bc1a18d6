// What tracing.slow.test.ts starts: the instrumentation has to patch Nest before it is imported.
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { NestInstrumentation } from '@opentelemetry/instrumentation-nestjs-core';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';

const [connection] = process.argv.slice(2) as [string];
const begun: string[] = [];
const ended: string[] = [];

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const processor = {
  onStart: ({ name }: { name: string }) => void begun.push(name),
  onEnd: ({ name }: { name: string }) => void ended.push(name),
  forceFlush: async () => {},
  shutdown: async () => {},
};
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
registerInstrumentations({ instrumentations: [new NestInstrumentation()] });

const { Span } = await import('nestjs-otel');
const { runStories } = await import('./traced-app.js');
const stories = await runStories({ connection, traced: Span(), begun });
process.stdout.write(JSON.stringify({ stories, begun, ended: ended.length }));
