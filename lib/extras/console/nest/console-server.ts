import { Logger, type OnModuleInit } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { getRedisLockOptionsToken, partsOf, registered } from '../../../nest/service-parts.js';
import { ConsoleAnswers } from '../answers/console-answers.js';
import { Refusal, redirectReply, type Reply } from '../answers/reply.js';
import type { ConsoleSource } from '../answers/source.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { readBody, type WithBody } from './request-body.js';

/** The common part of requests of Express and Fastify. */
export interface PlatformRequest extends WithBody {
  readonly params: Readonly<Record<string, string>>;
}

/** Answers the requests of one console, by the HTTP adapter of the application. */
export class ConsoleServer implements OnModuleInit {
  #answers: ConsoleAnswers | undefined;
  readonly #logger = new Logger('RedisLockConsole');

  constructor(
    private readonly options: ResolvedConsoleOptions,
    private readonly host: HttpAdapterHost,
    private readonly modules: ModuleRef,
    private readonly config: ApplicationConfig,
  ) {}

  /** @throws InvalidLockOptionsError if a lock service is missing */
  onModuleInit(): void {
    const { title, actions, services, allowedOrigins, guards, path } = this.options;
    this.#answers = new ConsoleAnswers({
      title,
      sources: services.map((name) => this.#source(name)),
      actions,
      allowedOrigins,
      onError: (error) => this.#logger.error(error),
    });
    if (guards.length === 0)
      this.#logger.warn(
        `The console at ${path} has no guards of its own, because the option unguarded is set. Make sure that others cannot open it.`,
      );
    if (this.#isCutInTwo())
      this.#logger.warn(
        `The global prefix excludes only a part of the console at ${path}, so its page finds no data. ` +
          `Exclude all of it: ['${path}', '${path}/*path'], or '${path}/(.*)' in Nest 10.`,
      );
  }

  /** The page and its data have to be at the same place. */
  #isCutInTwo(): boolean {
    const { exclude = [] } = this.config.getGlobalPrefixOptions();
    const [page, data] = ['', '/api/now'].map((rest) =>
      exclude.some(({ pathRegex }) => new RegExp(pathRegex).test(`/${this.options.path}${rest}`)),
    );
    return this.config.getGlobalPrefix() !== '' && page !== data;
  }

  async file(name: string, request: PlatformRequest, response: unknown): Promise<void> {
    const { pathname, search } = this.#address(request);
    const isPage = name === '';
    const reply =
      isPage && !pathname.endsWith('/')
        ? redirectReply(pathname.slice(pathname.lastIndexOf('/') + 1), search)
        : this.#answers!.file(name, headerOf(request, 'if-none-match'));
    return this.#send(reply, response);
  }

  async view(name: string, request: PlatformRequest, response: unknown): Promise<void> {
    const { searchParams } = this.#address(request);
    const reply = await this.#answers!.view(name, searchParams, headerOf(request, 'if-none-match'));
    return this.#send(reply, response);
  }

  async act(name: string, request: PlatformRequest, response: unknown): Promise<void> {
    const { who } = this.options;
    const reply = await this.#answers!.act(name, {
      query: this.#address(request).searchParams,
      header: (header) => headerOf(request, header),
      body: () => readBody(request),
      who: async () => who?.(request),
    });
    return this.#send(reply, response);
  }

  #address(request: PlatformRequest): URL {
    const url = this.host.httpAdapter.getRequestUrl(request) as string;
    // Two slashes at the beginning would be the name of a host.
    return new URL(url.replace(/^\/+/, '/'), 'http://console');
  }

  async #send({ status, headers, body }: Reply, response: unknown): Promise<void> {
    const { httpAdapter } = this.host;
    // An interceptor with a time limit has answered.
    if (httpAdapter.isHeadersSent(response)) return;
    for (const [name, value] of Object.entries(headers)) httpAdapter.setHeader(response, name, value);
    await httpAdapter.reply(response, body, status);
  }

  #source(name: string): ConsoleSource {
    const asker = { name: 'RedisLockConsoleModule', option: 'services', passedAs: 'services: [...]' };
    const parts = partsOf(registered(this.modules, name, asker));
    type Options = { readonly defaults: { readonly leaseMs: number } };
    const { defaults } = this.modules.get<Options>(getRedisLockOptionsToken(name), { strict: false });
    return {
      service: name,
      leaseMs: defaults.leaseMs,
      // A test may exchange it.
      get client() {
        if (parts) return parts.client;
        throw new Refusal('NOT_SUPPORTED', 'These locks are a test double, which keeps no state.');
      },
      jobs: parts?.jobs && parts.jobs.records.refusal === undefined ? parts.jobs.records : null,
      ownJobs: () => new Set(parts?.ownJobs?.names()),
    };
  }
}

function headerOf({ headers }: PlatformRequest, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
