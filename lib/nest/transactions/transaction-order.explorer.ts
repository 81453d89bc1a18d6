import type { OnModuleInit } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { prototypeOf } from '../prototype-of.js';
import { DEFAULT_NAME } from '../tokens.js';
import { libraryOfMethod } from './known-transactions.js';
import { lockedMethodsOf, methodAbove, wrongOrder } from './transaction-order.js';

/**
 * Refuses locked methods with a known `@Transactional()` above the lock. One explorer for each lock service. What it
 * cannot recognize, the first call of the method shows.
 */
export class TransactionOrderExplorer implements OnModuleInit {
  /**
   * @param lockService the name of the lock service
   * @param isExempt whether a method is right all the same: `@LockHandler` is outside of every decorator, and the
   *   release may wait for the transaction
   */
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly lockService: string,
    private readonly isExempt: (method: object) => boolean,
  ) {}

  /** @throws InvalidLockOptionsError */
  onModuleInit(): void {
    const seen = new Set<object>();
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      for (let each = prototypeOf(wrapper); each && !seen.has(each); each = Object.getPrototypeOf(each) as object) {
        seen.add(each);
        this.#check(each);
      }
    }
  }

  #check(prototype: object): void {
    for (const locked of lockedMethodsOf(prototype)) {
      const { ignoresTransaction, lockService = DEFAULT_NAME } = locked;
      const above = methodAbove(prototype, locked);
      if (!above || ignoresTransaction || lockService !== this.lockService || this.isExempt(above)) continue;
      const library = libraryOfMethod(above);
      if (library) throw wrongOrder(locked, library);
    }
  }
}
