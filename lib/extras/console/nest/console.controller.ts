import { Controller, Get, Inject, Post, Req, Res, type Type, UseGuards, VERSION_NEUTRAL } from '@nestjs/common';
import type { ResolvedConsoleOptions } from './console-options.js';
import { ConsoleServer, type PlatformRequest } from './console-server.js';

/** By which `@nestjs/swagger` leaves a controller out of its document. */
const HIDDEN_FROM_SWAGGER = 'swagger/apiExcludeController';

const FILES = ['', ':file'];

/**
 * Fastify tells apart an address with a slash at its end, and Nest declares no route with one: so there, the page is also
 * all that has no other route. Called before routes are made.
 */
export function mapSlash(controller: Type, platform: string): void {
  const prototype = controller.prototype as object;
  const file = Object.getOwnPropertyDescriptor(prototype, 'file')!;
  Get(platform === 'fastify' ? ['', '*'] : FILES)(prototype, 'file', file);
}

/** A controller for one console: its path and its guards are those of the options. */
export function consoleController({ path, guards }: ResolvedConsoleOptions): Type {
  /** Takes requests and responses as they are: pipes, serializers and wrappers of the application find nothing to change. */
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(...(guards as Type[]))
  class RedisLockConsoleController {
    constructor(@Inject(ConsoleServer) private readonly server: ConsoleServer) {}

    @Get('api/:view')
    view(@Req() request: PlatformRequest, @Res() response: unknown): Promise<void> {
      return this.server.view(request.params['view']!, request, response);
    }

    @Get(FILES)
    file(@Req() request: PlatformRequest, @Res() response: unknown): Promise<void> {
      const { file, '*': rest = '' } = request.params;
      return this.server.file(file ?? rest, request, response);
    }

    @Post('api/:action')
    act(@Req() request: PlatformRequest, @Res() response: unknown): Promise<void> {
      return this.server.act(request.params['action']!, request, response);
    }
  }
  Reflect.defineMetadata(HIDDEN_FROM_SWAGGER, [true], RedisLockConsoleController);
  return RedisLockConsoleController;
}
