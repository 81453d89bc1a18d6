/** What actors sell: not safe to use without a lock. */
export class Stock {
  constructor(private left: number) {}

  async read(): Promise<number> {
    return this.left;
  }

  async write(left: number): Promise<void> {
    this.left = left;
  }

  get now(): number {
    return this.left;
  }
}
