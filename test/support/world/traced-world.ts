import { context, type Span, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { spanTelemetry } from '../../../lib/extras/telemetry/open-telemetry/open-telemetry.js';
import type { LockTelemetry } from '../../../lib/kernel/events/telemetry.js';

/** A span as a test reads it. */
export interface SeenSpan {
  readonly name: string;
  readonly id: string;
  readonly trace: string;
  readonly parent: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  readonly links: readonly { readonly trace: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  readonly status: 'unset' | 'ok' | 'error';
  readonly message: string | undefined;
}

/** A real OpenTelemetry SDK, which exports to memory. */
export class TracedWorld {
  readonly #exporter = new InMemorySpanExporter();
  readonly provider: BasicTracerProvider;
  readonly tracer: Tracer;

  constructor(sampler?: Sampler) {
    this.provider = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(this.#exporter)],
      ...(sampler && { sampler }),
    });
    this.tracer = this.provider.getTracer('test');
  }

  get telemetry(): LockTelemetry {
    return spanTelemetry(this.provider);
  }

  /** Runs the work in a span, as a request. */
  async request<T>(name: string, work: (span: Span) => Promise<T>): Promise<T> {
    const span = this.tracer.startSpan(name);
    try {
      return await context.with(trace.setSpan(context.active(), span), () => work(span));
    } finally {
      span.end();
    }
  }

  /** The spans that have ended, in the order in which they ended. */
  get spans(): readonly SeenSpan[] {
    return this.#exporter.getFinishedSpans().map(seen);
  }

  get names(): readonly string[] {
    return this.spans.map(({ name }) => name);
  }

  /** The only span of this name. */
  span(name: string): SeenSpan {
    const found = this.spans.filter((span) => span.name === name);
    if (found.length !== 1) throw new Error(`${found.length} spans are called ${name}: ${this.names.join(', ')}`);
    return found[0]!;
  }

  /** The names of the spans above this one, the nearest first. */
  above({ parent }: SeenSpan): readonly string[] {
    const span = this.spans.find(({ id }) => id === parent);
    return span ? [span.name, ...this.above(span)] : [];
  }
}

/** Spans follow the async context from here on, until the tests of the file have ended. */
export function useAsyncContexts(): void {
  beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
  afterAll(() => context.disable());
}

const STATUS = { [SpanStatusCode.UNSET]: 'unset', [SpanStatusCode.OK]: 'ok', [SpanStatusCode.ERROR]: 'error' } as const;

function seen(span: ReadableSpan): SeenSpan {
  const { spanId, traceId } = span.spanContext();
  return {
    name: span.name,
    id: spanId,
    trace: traceId,
    parent: span.parentSpanContext?.spanId,
    attributes: span.attributes,
    events: span.events.map(({ name, attributes = {} }) => ({ name, attributes })),
    links: span.links.map(({ context: { traceId: linked }, attributes = {} }) => ({ trace: linked, attributes })),
    status: STATUS[span.status.code],
    message: span.status.message,
  };
}
