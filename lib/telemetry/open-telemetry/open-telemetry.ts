import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { checked, flag, type Option, type OptionsOf, OptionTable } from '../../core/api/option-table.js';
import { describeValue } from '../../core/api/validation.js';
import type { LockTelemetry } from '../../core/events/telemetry.js';
import { LockSpans } from '../spans/lock-spans.js';
import { OpenTelemetryMetrics } from './metrics.js';

/** The name of the meter. */
const SCOPE = 'nestjs-redis-lock';

/** What {@link openTelemetry} takes. */
export interface OpenTelemetryOptions {
  /**
   * Whether locks are measured.
   *
   * @default true
   * @see docs/reference/telemetry.md
   */
  metrics?: boolean;
  /**
   * Makes the meter of the metrics.
   *
   * @allowed a `MeterProvider` of OpenTelemetry
   * @default the one that is registered when the lock service starts
   */
  meterProvider?: MeterProvider;
  /**
   * Whether waits, holds and runs of jobs are spans.
   *
   * @default true
   */
  traces?: boolean;
  /**
   * Makes the tracer of the spans.
   *
   * @allowed a `TracerProvider` of OpenTelemetry
   * @default the one that is registered, also if that happens after the start
   */
  tracerProvider?: TracerProvider;
  /**
   * Whether renewals are spans, too: one for each lease and a third of its length. Those of the watchdog have traces of
   * their own, with a link to the hold.
   *
   * @default false
   */
  renewalSpans?: boolean;
}

export const OPEN_TELEMETRY_OPTIONS = new OptionTable({
  metrics: flag().default(true),
  meterProvider: provider<MeterProvider>('getMeter'),
  traces: flag().default(true),
  tracerProvider: provider<TracerProvider>('getTracer'),
  renewalSpans: flag().default(false),
} satisfies OptionsOf<OpenTelemetryOptions>);

/**
 * Reports what happens to locks by the API of OpenTelemetry, for the module option `telemetry`. The SDK and its
 * exporters are those of the application.
 *
 * @throws InvalidLockOptionsError
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): LockTelemetry {
  OPEN_TELEMETRY_OPTIONS.check('openTelemetry', options);
  const { defaults } = OPEN_TELEMETRY_OPTIONS;
  const { metrics = defaults.metrics, traces = defaults.traces, renewalSpans = defaults.renewalSpans } = options;
  const { meterProvider, tracerProvider } = options;
  if (!metrics && !traces) {
    const what = 'openTelemetry() with metrics: false and traces: false reports nothing. Leave it out instead.';
    throw new InvalidLockOptionsError(what, 'traces');
  }
  const telemetries: LockTelemetry[] = [];
  if (metrics) telemetries.push(new OpenTelemetryMetrics(SCOPE, meterProvider));
  if (traces) telemetries.push(spanTelemetry(tracerProvider, renewalSpans));
  return together(telemetries);
}

/** One telemetry of several. Where one of them throws at the start, none of them is left half started. */
function together(telemetries: readonly LockTelemetry[]): LockTelemetry {
  return {
    start(source) {
      const stops: (() => void)[] = [];
      const stop = (): void => {
        for (const each of stops.splice(0)) each();
      };
      try {
        for (const telemetry of telemetries) stops.push(telemetry.start(source) ?? (() => {}));
      } catch (error) {
        stop();
        throw error;
      }
      return stop;
    },
  };
}

/** A provider of an SDK, known by its method. */
function provider<T>(method: string): Option<T> {
  return checked<T>((option, value) => {
    if (typeof (value as Record<string, unknown> | null)?.[method] === 'function') return;
    throw new InvalidLockOptionsError(
      `${option} of openTelemetry() must be a provider of an OpenTelemetry SDK, with the method ${method}(), ` +
        `not ${describeValue(value)}.`,
      option,
    );
  });
}

/**
 * Makes spans of acquisitions, holds and runs of jobs.
 *
 * @param provider default: the one that is registered, also if that happens later
 * @param renewalSpans whether renewals are spans, too
 */
export function spanTelemetry(provider?: TracerProvider, renewalSpans = false): LockTelemetry {
  return { start: (source) => source.trace(new LockSpans(provider, renewalSpans)) };
}
