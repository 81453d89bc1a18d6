import type { INestApplication } from '@nestjs/common';

/** The context of a program that runs after the `AppModule` of a snippet has started. */
export interface SnippetWorld {
  readonly app: INestApplication;
  /** The address of the application. */
  readonly url: string;
  /** The provider of a class that the snippet exports, by the name of the class. */
  provider<T>(className: string): T;
}
