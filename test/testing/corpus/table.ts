/** A table of the database that all instances share. Each call takes a moment, in which others may come. */
export class Table<Row> {
  readonly #rows = new Map<string, Row>();

  constructor(private readonly initial: Readonly<Record<string, Row>>) {
    this.reset();
  }

  /** As it is before each schedule. */
  reset(): void {
    this.#rows.clear();
    for (const [id, row] of Object.entries(this.initial)) this.#rows.set(id, row);
  }

  async find(id: string): Promise<Row | undefined> {
    return this.#rows.get(id);
  }

  async save(id: string, row: Row): Promise<void> {
    this.#rows.set(id, row);
  }

  /** The test's view, which takes no time. */
  row(id: string): Row | undefined {
    return this.#rows.get(id);
  }
}
