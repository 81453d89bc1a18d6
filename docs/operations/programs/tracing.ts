import assert from 'node:assert/strict';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

/** As an SDK does, which the application starts. */
const exporter = new InMemorySpanExporter();
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));

export default async ({ provider }: SnippetWorld): Promise<void> => {
  await (provider('Orders') as { pay(): Promise<void> }).pay();
  const spans = exporter.getFinishedSpans().map(({ name }) => name);
  assert.deepEqual(spans, ['acquire Orders.pay', 'hold Orders.pay']);
  context.disable();
  trace.disable();
};
