/** When the resource of a waiter will be free, as messages say. */
export class FreeTime {
  /** When the last command was sent whose answer says that the waiter is in the queue. */
  #answeredSentAt = -1;
  /** The last message: when the resource will be free, and the stamp in it. */
  #notice: { readonly freeAt: number; readonly sentAt: number } | undefined;

  /**
   * A message says so. It brings back the stamp of the last command, or of one that is not answered yet: a copy of an
   * older message changes nothing.
   */
  hear(freeAt: number, sentAt: number): void {
    const known = this.#notice;
    if (sentAt < Math.floor(this.#answeredSentAt) || (sentAt === known?.sentAt && freeAt >= known.freeAt)) return;
    this.#notice = { freeAt, sentAt };
  }

  /** Known if a message has said so, and the store has answered the command it belongs to. */
  get at(): number {
    return this.#notice && this.#notice.sentAt <= this.#answeredSentAt ? this.#notice.freeAt : Infinity;
  }

  /**
   * The store has answered that the waiter is in the queue.
   *
   * @returns the pause until the resource is free. 0 if it may be free by now: the store may have executed the command
   * before the holder released, though the message about that has overtaken the answer
   */
  answered(sentAt: number, now: number): number {
    this.#answeredSentAt = sentAt;
    // The store was told of the stamp after the message was sent: so this answer is newer.
    if (this.#notice && this.#notice.sentAt < Math.floor(sentAt)) this.#notice = undefined;
    return this.at > sentAt ? Math.max(0, this.at - now) : Infinity;
  }
}
