import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';

const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
export type ChannelEvent = (typeof EVENTS)[number];

export interface Message<Context> {
  readonly event: ChannelEvent;
  readonly context: Context;
  /** The context as it was at that moment. */
  readonly said: Context;
}

/** Everything that one tracing channel publishes, from now until `close()`. */
export class ChannelRecorder<Context extends object> {
  readonly messages: Message<Context>[] = [];
  readonly #channel: TracingChannel<unknown, Context>;
  readonly #subscribers: Parameters<TracingChannel<unknown, Context>['subscribe']>[0];

  /** @param onMessage is called with each message, in the async context in which it is published */
  constructor(name: string, onMessage: (message: Message<Context>) => void = () => {}) {
    this.#channel = tracingChannel(name);
    const listenTo = (event: ChannelEvent) => (context: object) => {
      const message = { event, context: context as Context, said: { ...(context as Context) } };
      this.messages.push(message);
      onMessage(message);
    };
    this.#subscribers = Object.fromEntries(EVENTS.map((event) => [event, listenTo(event)])) as never;
    this.#channel.subscribe(this.#subscribers);
  }

  /** What the contexts said at this event. */
  said(event: ChannelEvent): Context[] {
    return this.messages.filter((message) => message.event === event).map(({ said }) => said);
  }

  /** The events of each context, in the order of the contexts. */
  get sequences(): ChannelEvent[][] {
    const byContext = new Map<object, ChannelEvent[]>();
    for (const { event, context } of this.messages) byContext.set(context, [...(byContext.get(context) ?? []), event]);
    return [...byContext.values()];
  }

  close(): void {
    this.#channel.unsubscribe(this.#subscribers);
  }
}
