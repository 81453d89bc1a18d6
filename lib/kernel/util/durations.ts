/** The upper limits of the buckets in which durations are counted, in milliseconds. One more bucket has longer ones. */
export const DURATION_BUCKETS_MS: readonly number[] = /* @__PURE__ */ Object.freeze([
  1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
]);

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

/** Two units if one would be coarse: `9 min 51 s`, `2 h 5 min`. */
export function longDuration(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (!Number.isFinite(ms) || seconds < 120) return formatDuration(ms);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}
