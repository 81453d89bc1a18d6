/** Formats a duration for a message: `301 ms`, `1.8 s`, `42 s`, `5 min`, `3 h`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return 'ever';
  const rounded = Math.max(0, Math.round(ms));
  if (rounded < 1_000) return `${rounded} ms`;
  if (rounded < 9_950) return `${Number((rounded / 1_000).toFixed(1))} s`;
  if (rounded < 119_500) return `${Math.round(rounded / 1_000)} s`;
  if (rounded < 119.5 * 60_000) return `${Math.round(rounded / 60_000)} min`;
  return `${Math.round(rounded / 3_600_000)} h`;
}
