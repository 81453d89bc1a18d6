import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** One file of orders, of the several that make a batch. */
export interface ImportFile {
  batch: string;
  file: string;
  /** How many orders are in it. */
  orders: number;
  /** How many files the batch has. */
  files: number;
}

/** Who did what to a file, and under which fencing token. */
export interface Finished {
  file: string;
  begunBy: string;
  finishedBy: string;
  token: number;
}

/** What was imported: one total for all files of a batch, which is read and then written, so one file at a time. */
@Injectable()
export class ImportRegister {
  constructor(private readonly database: Database) {}

  /** From now on whoever has an older token writes nothing, and so what is read is what will be written upon. */
  async open(batch: string, token: number): Promise<void> {
    await this.database.fenced(`import:${batch}:fence`, token, []);
  }

  /** Total and progress in one step: whoever does the file again, because its worker died, goes on at the right order. */
  async book(file: ImportFile, token: number): Promise<void> {
    await this.eachOrder(file, (total, done) =>
      this.database.fenced(`import:${file.batch}:fence`, token, [
        ['SET', totalOf(file.batch), total],
        ['SET', doneOf(file), done],
      ]),
    );
  }

  async bookWithoutLock(file: ImportFile): Promise<void> {
    await this.eachOrder(file, async (total, done) => {
      await this.database.setNumber(totalOf(file.batch), total);
      await this.database.setNumber(doneOf(file), done);
    });
  }

  async total(batch: string): Promise<number> {
    return (await this.database.number(totalOf(batch))) ?? 0;
  }

  async finish(batch: string, finished: Finished): Promise<void> {
    await this.database.append(`import:${batch}:finished`, finished);
  }

  finished(batch: string): Promise<Finished[]> {
    return this.database.rows(`import:${batch}:finished`);
  }

  private async eachOrder(file: ImportFile, save: (total: number, done: number) => Promise<void>): Promise<void> {
    for (let done = (await this.database.number(doneOf(file))) ?? 0; done < file.orders; done++) {
      const total = await this.total(file.batch);
      await sleep(settings.paymentMs);
      await save(total + 1, done + 1);
    }
  }
}

function totalOf(batch: string): string {
  return `import:${batch}:total`;
}

function doneOf({ batch, file }: ImportFile): string {
  return `import:${batch}:done:${file}`;
}
