/** Pages of a grid of steps and runs, put together: columns one after the other, rows by the key of the step. */
export interface GridRunLike {
  states: readonly (string | null)[];
  seconds: readonly (number | null)[];
}

export interface GridPageLike<Run extends GridRunLike> {
  steps: readonly string[];
  runs: readonly Run[];
}

export interface GridColumn<Run> {
  run: Run;
  /** The place of each row in the run's own lists; -1 where it did not have the step. */
  places: Int32Array;
}

export interface WholeGrid<Run> {
  steps: string[];
  columns: GridColumn<Run>[];
}

/** Rows keep the order of the first page, the latest; steps that only older runs had come after them. */
export function joinPages<Run extends GridRunLike>(pages: readonly GridPageLike<Run>[]): WholeGrid<Run> {
  const rows = new Map<string, number>();
  for (const page of pages) for (const step of page.steps) if (!rows.has(step)) rows.set(step, rows.size);
  const columns = pages.flatMap((page) => {
    const places = new Int32Array(rows.size).fill(-1);
    page.steps.forEach((step, place) => (places[rows.get(step) ?? 0] = place));
    return page.runs.map((run) => ({ run, places }));
  });
  return { steps: [...rows.keys()], columns };
}

/** The states that are in a grid, in the given order. */
export function statesIn<Run extends GridRunLike>(grid: WholeGrid<Run>, order: readonly string[]): string[] {
  const found = new Set(grid.columns.flatMap((column) => column.run.states));
  return order.filter((state) => found.has(state));
}

export function cellOf<Run extends GridRunLike>(grid: WholeGrid<Run>, row: number, column: number): { state: string; seconds: number | null } | null {
  const found = grid.columns[column];
  const place = found?.places[row] ?? -1;
  const state = place < 0 ? null : (found?.run.states[place] ?? null);
  return state === null ? null : { state, seconds: found?.run.seconds[place] ?? null };
}
