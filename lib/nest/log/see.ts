/** Names the section of the page on the log that has more. */
export function see(section: string): string {
  return `See docs/operations/logs.md#${section}.`;
}
