import type { INestApplication } from '@nestjs/common';

/** What a program gets that runs after the `AppModule` of a snippet has started. */
export interface SnippetWorld {
  readonly app: INestApplication;
  /** Where the application listens. */
  readonly url: string;
  /** The provider of a class that the snippet exports, by the name of the class. */
  provider<T>(className: string): T;
}
