import { request } from 'node:http';
import type { DynamicModule } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { type GqlModuleOptions, GraphQLModule } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';

/** One of the servers that Nest has a driver for. */
export interface GraphqlServer {
  adapter(): AbstractHttpAdapter;
  /** With subscriptions over WebSockets, and as talkative as it can be about errors. */
  graphql(options?: Options): DynamicModule;
  /** The same, by `forRootAsync`. */
  graphqlAsync(options?: Options): DynamicModule;
}

type Options = Pick<GqlModuleOptions, 'fieldResolverEnhancers' | 'include' | 'path' | 'transformSchema'>;

const apollo: ApolloDriverConfig = {
  driver: ApolloDriver,
  autoSchemaFile: true,
  graphiql: false,
  includeStacktraceInErrorResponses: true,
  subscriptions: { 'graphql-ws': true },
};
const mercurius: MercuriusDriverConfig = { driver: MercuriusDriver, autoSchemaFile: true, subscription: true };

/** For `describe.each`. */
export const SERVERS: [string, GraphqlServer][] = [
  [
    'Apollo on Express',
    {
      adapter: () => new ExpressAdapter(),
      graphql: (options) => GraphQLModule.forRoot<ApolloDriverConfig>({ ...apollo, ...options }),
      graphqlAsync: (options) =>
        GraphQLModule.forRootAsync<ApolloDriverConfig>({
          driver: ApolloDriver,
          useFactory: async () => ({ ...apollo, ...options }),
        }),
    },
  ],
  [
    'Mercurius on Fastify',
    {
      adapter: () => new FastifyAdapter(),
      graphql: (options) => GraphQLModule.forRoot<MercuriusDriverConfig>({ ...mercurius, ...options }),
      graphqlAsync: (options) =>
        GraphQLModule.forRootAsync<MercuriusDriverConfig>({
          driver: MercuriusDriver,
          useFactory: async () => ({ ...mercurius, ...options }),
        }),
    },
  ],
];

export interface GraphqlAnswer {
  data?: Record<string, unknown> | null;
  errors?: { message: string; path?: string[]; extensions?: Record<string, unknown> }[];
}

/** Sends a document. */
export async function ask(url: string, query: string, headers: Record<string, string> = {}): Promise<GraphqlAnswer> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  return { status: response.status, ...((await response.json()) as object) } as GraphqlAnswer;
}

/** Sends a document, and does not wait for the answer. Returns the client's way to leave. */
export function askAndLeave(url: string, query: string): () => void {
  const sent = request(`${url}/graphql`, { method: 'POST', headers: { 'content-type': 'application/json' } });
  sent.on('error', () => undefined).end(JSON.stringify({ query }));
  return () => void sent.destroy();
}
