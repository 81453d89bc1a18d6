import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';
import { Table } from './table.js';

class Articles extends Table<string> {
  constructor() {
    super({ a1: 'draft' });
  }
}

interface Editor {
  publish(id: string): Promise<void>;
}

@Injectable()
class EditorForgetsToRelease implements Editor {
  constructor(
    private readonly locks: RedisLockService,
    private readonly articles: Articles,
  ) {}

  async publish(id: string): Promise<void> {
    const lease = await this.locks.acquire(`article:${id}`);
    if ((await this.articles.find(id)) === 'published') return;
    await this.articles.save(id, 'published');
    await lease.release();
  }
}

@Injectable()
class MendedEditor implements Editor {
  constructor(
    private readonly locks: RedisLockService,
    private readonly articles: Articles,
  ) {}

  async publish(id: string): Promise<void> {
    await using _lease = await this.locks.acquire(`article:${id}`);
    if ((await this.articles.find(id)) === 'published') return;
    await this.articles.save(id, 'published');
  }
}

export const notReleased = raceCase<Editor, Articles>({
  bug: 'A lease that one return path does not release',
  broken: EditorForgetsToRelease,
  mended: MendedEditor,
  repository: Articles,
  reads: ['find'],
  actors: {
    A: ({ service }) => service.publish('a1'),
    B: ({ service }) => service.publish('a1'),
    C: ({ service }) => service.publish('a1'),
  },
  invariant: () => undefined,
  story: /B Articles.find\("a1"\) -> "published"; C asks for article:a1 and finds it held; .*article:a1/,
});
