/** Which leases and waiting calls a roll call is about. */
export class Scope {
  constructor(
    readonly prefix = '',
    readonly group?: string,
  ) {}

  /** As a question has it. Empty for all. */
  get text(): string {
    if (this.prefix === '' && this.group === undefined) return '';
    return JSON.stringify(this.group === undefined ? [this.prefix] : [this.prefix, this.group]);
  }

  /** Text of another version, or another program, means all. */
  static read(text: string): Scope {
    try {
      const [prefix, group] = JSON.parse(text) as unknown[];
      return new Scope(typeof prefix === 'string' ? prefix : '', typeof group === 'string' ? group : undefined);
    } catch {
      return new Scope();
    }
  }

  /** @param groupOf called only if the scope names one */
  has(resource: string, groupOf: () => string): boolean {
    return resource.startsWith(this.prefix) && (this.group === undefined || this.group === groupOf());
  }
}
