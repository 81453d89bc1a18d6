/**
 * Makes `instanceof` work across copies of this package. A process has two copies when it loads the package both as an
 * ES module and as CommonJS. An object of the other copy counts if its class was branded with the same name. Subclasses
 * that an application declares keep the plain meaning of `instanceof`.
 *
 * @param classes by name. A bundler may rename a class, but not the key
 */
export function brand(classes: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, branded] of Object.entries(classes)) {
    const mark = Symbol.for(`nestjs-redis-lock:${name}`);
    Object.defineProperty(branded.prototype, mark, { value: true });
    Object.defineProperty(branded, Symbol.hasInstance, {
      value(this: unknown, value: unknown): boolean {
        // A subclass inherits this method.
        if (this !== branded) return Function.prototype[Symbol.hasInstance].call(this as () => void, value);
        return value !== null && typeof value === 'object' && mark in value;
      },
    });
  }
}
