import { Global, Module } from '@nestjs/common';
import { RunBookController } from './run-book.controller.js';
import { RunBook } from './run-book.js';

@Global()
@Module({ controllers: [RunBookController], providers: [RunBook], exports: [RunBook] })
export class RunBookModule {}
