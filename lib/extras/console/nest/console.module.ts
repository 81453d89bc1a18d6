import 'reflect-metadata';
import { type DynamicModule, Inject, Module, type NestModule, type Type } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { type RedisLockConsoleOptions, resolveConsoleOptions } from './console-options.js';
import { consoleController, mapSlash } from './console.controller.js';
import { ConsoleServer } from './console-server.js';

const CONSOLE = Symbol('console');

interface Console {
  readonly path: string;
  readonly controller: Type;
}

/**
 * A page in your application that shows the locks, waits, jobs, leaders and instances of the whole fleet. Import it
 * next to `RedisLockModule`.
 */
@Module({})
export class RedisLockConsoleModule implements NestModule {
  readonly #host: HttpAdapterHost;
  readonly #controller: Type;

  constructor(@Inject(HttpAdapterHost) host: HttpAdapterHost, @Inject(CONSOLE) { controller }: Console) {
    this.#host = host;
    this.#controller = controller;
  }

  /** Called by Nest, before it creates the routes. */
  configure(): void {
    mapSlash(this.#controller, this.#host.httpAdapter.getType());
  }

  /**
   * Registers a console. The page is read-only unless you list `actions`.
   *
   * ```ts
   * RedisLockConsoleModule.forRoot({
   *   path: 'ops/locks',
   *   guards: [AdminGuard], // who may see it
   *   actions: ['release', 'runJob'],
   *   who: (request) => request.user?.email, // for the log
   * });
   * ```
   *
   * @throws InvalidLockOptionsError if an option is invalid, if neither `guards` nor `unguarded` is set, or if
   *   `actions` is set without `who`
   */
  static forRoot(options: RedisLockConsoleOptions): DynamicModule {
    const resolved = resolveConsoleOptions(options);
    const controller = consoleController(resolved);
    return {
      module: RedisLockConsoleModule,
      imports: options.imports ?? [],
      controllers: [controller],
      providers: [
        // Nest 10 takes two registrations for one where all that they provide is written alike: the path tells consoles apart.
        { provide: CONSOLE, useValue: { path: resolved.path, controller } satisfies Console },
        {
          provide: ConsoleServer,
          inject: [HttpAdapterHost, ModuleRef, ApplicationConfig],
          useFactory: (...parts: [HttpAdapterHost, ModuleRef, ApplicationConfig]) =>
            new ConsoleServer(resolved, ...parts),
        },
      ],
    };
  }
}
