import { fileURLToPath } from 'node:url';
import {
  type ChannelOptions,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Answer, Order } from './grpc-orders.js';

export const PROTO = fileURLToPath(new URL('orders.proto', import.meta.url));

type Calls = Record<string, (...args: unknown[]) => unknown>;

/** A plain client of the service, which shows what goes over the wire. */
export class GrpcClient {
  readonly #client: Calls & { close(): void };

  constructor(url: string, options: ChannelOptions = {}) {
    const shop = loadPackageDefinition(loadSync(PROTO))['shop'] as Record<string, ServiceClientConstructor>;
    this.#client = new shop['Orders']!(url, credentials.createInsecure(), options) as never;
  }

  /** Starts a unary call. */
  begin(method: string, order: Order, deadlineMs = 30_000): { cancel(): void; answer: Promise<Answer> } {
    let cancel = (): void => {};
    const answer = new Promise<Answer>((resolve, reject) => {
      const done = (error: ServiceError | null, value: Answer): void => (error ? reject(error) : resolve(value));
      const options = { deadline: Date.now() + deadlineMs };
      const call = this.#client[method]!(order, new Metadata(), options, done) as { cancel(): void };
      cancel = () => call.cancel();
    });
    answer.catch(() => {});
    return { cancel: () => cancel(), answer };
  }

  ask(method: string, order: Order): Promise<Answer> {
    return this.begin(method, order).answer;
  }

  /** Opens a stream of answers. */
  watch(order: Order): ClientReadableStream<Answer> {
    return this.#client['Watch']!(order) as ClientReadableStream<Answer>;
  }

  /** Opens a stream in both directions. */
  talk(method: string, orderId: string): ClientDuplexStream<Order, Answer> {
    return this.#client[method]!(metadataOf(orderId)) as ClientDuplexStream<Order, Answer>;
  }

  /** Sends a stream, and resolves to its only answer. */
  async upload(method: string, orderId: string, orders: readonly Order[]): Promise<Answer> {
    const { call, answer } = this.beginUpload(method, orderId);
    for (const order of orders) call.write(order);
    call.end();
    return answer;
  }

  /** Opens a stream that has one answer. */
  beginUpload(method: string, orderId: string): { call: ClientWritableStream<Order>; answer: Promise<Answer> } {
    let call!: ClientWritableStream<Order>;
    const answer = new Promise<Answer>((resolve, reject) => {
      const done = (error: ServiceError | null, value: Answer): void => (error ? reject(error) : resolve(value));
      call = this.#client[method]!(metadataOf(orderId), done) as ClientWritableStream<Order>;
    });
    answer.catch(() => {});
    return { call, answer };
  }

  close(): void {
    this.#client.close();
  }
}

function metadataOf(orderId: string): Metadata {
  const metadata = new Metadata();
  metadata.set('order-id', orderId);
  return metadata;
}

/** Collects a stream of answers. `ended` rejects with the error that ended it. */
export function collect(stream: ClientReadableStream<Answer>): { answers: Answer[]; ended: Promise<void> } {
  const answers: Answer[] = [];
  stream.on('data', (answer: Answer) => answers.push(answer));
  const ended = new Promise<void>((resolve, reject) => void stream.on('end', resolve).on('error', reject));
  ended.catch(() => {});
  return { answers, ended };
}
