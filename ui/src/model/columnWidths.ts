const REM = 16;
const GAP_AND_EDGES = 1;
const BOX = 2.25;

/** The least width of a grid track such as "7rem", "minmax(12rem, 1fr)" or "40px", in pixels. */
export function leastOf(track: string): number {
  const [, amount, unit] = /^(?:minmax\()?\s*([\d.]+)(rem|px)?/.exec(track) ?? [];
  if (!amount || unit === undefined) return 0;
  return Number(amount) * (unit === "rem" ? REM : 1);
}

/** How wide a table must be for its columns: their tracks, the gaps between them and the edges. */
export function leastWidth(columns: readonly { width: string }[], hasBoxes: boolean): number {
  const tracks = columns.map((column) => leastOf(column.width)).concat(hasBoxes ? [BOX * REM] : []);
  return tracks.reduce((sum, track) => sum + track, 0) + (tracks.length + 1) * GAP_AND_EDGES * REM;
}
