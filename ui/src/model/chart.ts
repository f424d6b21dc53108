/** Arithmetic of charts over time. */

/** Round numbers from zero up to at least the greatest value: three or four of them. */
export function niceScale(most: number, isWhole = false): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough - 1e-12) ?? power * 10;
  const size = isWhole ? Math.max(1, Math.ceil(step)) : step;
  const marks: number[] = [];
  for (let mark = 0; mark < most + size - 1e-9; mark += size) marks.push(Number(mark.toPrecision(12)));
  return marks;
}

const PERIODS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400];

/** The same for seconds: steps that people count in, such as 5 minutes, and not 3 min 20 s. */
export function timeScale(most: number): number[] {
  if (most <= 3) return niceScale(most);
  const step = PERIODS.find((size) => most / size <= 4) ?? 86_400 * Math.ceil(most / 4 / 86_400);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const STEPS = [5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR];

/** Instants on whole hours or parts of them, so many at most. They are whole in every zone with a whole offset. */
export function timeMarks(from: number, to: number, most: number): number[] {
  const step = STEPS.find((size) => (to - from) / size <= most) ?? 24 * HOUR * Math.ceil((to - from) / (24 * HOUR) / most);
  const marks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) marks.push(at);
  return marks;
}

export interface Line {
  name: string;
  values: readonly (number | null)[];
}

/** The sums of all lines at each point. */
export function totals(lines: readonly Line[]): number[] {
  const count = lines[0]?.values.length ?? 0;
  return Array.from({ length: count }, (_, index) => lines.reduce((sum, line) => sum + (line.values[index] ?? 0), 0));
}

export function greatest(lines: readonly Line[], isStacked: boolean): number {
  if (isStacked) return Math.max(0, ...totals(lines));
  return lines.reduce((most, line) => line.values.reduce<number>((found, value) => Math.max(found, value ?? 0), most), 0);
}

/** Whether any point of any line was measured. */
export function isMeasured(lines: readonly Line[]): boolean {
  return lines.some((line) => line.values.some((value) => value !== null));
}

/** The point below a place, given as a share of the width. */
export function pointAt(share: number, count: number): number | null {
  return count === 0 ? null : Math.max(0, Math.min(count - 1, Math.floor(share * count)));
}
