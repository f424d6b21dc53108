/** The structure of a workflow: its steps as places in a list, with the places that each waits for. */
export interface GraphStep {
  key: string;
  task: string;
  after: readonly number[];
  is_teardown?: boolean;
}

/** A teardown that waits for everything has arrows from the steps that nothing else follows, which says the same. */
export function arrowsOf(steps: readonly GraphStep[]): number[][] {
  const isFollowed = new Array<boolean>(steps.length).fill(false);
  for (const step of steps) for (const place of step.after) isFollowed[place] = true;
  const lasts = steps.flatMap((step, place) => (isFollowed[place] || step.is_teardown ? [] : [place]));
  return steps.map((step) => (step.is_teardown && step.after.length === 0 ? lasts : [...step.after]));
}

/** How far each node is from the beginning, by its longest way. */
export function depthsOf(after: readonly (readonly number[])[]): Int32Array {
  const following = followingOf(after);
  const left = after.map((places) => places.length);
  const depths = new Int32Array(after.length);
  const free = left.flatMap((number, place) => (number === 0 ? [place] : []));
  for (let place = free.pop(); place !== undefined; place = free.pop())
    for (const next of following[place] ?? []) {
      depths[next] = Math.max(depths[next] ?? 0, (depths[place] ?? 0) + 1);
      left[next] = (left[next] ?? 0) - 1;
      if (left[next] === 0) free.push(next);
    }
  return depths;
}

export function followingOf(after: readonly (readonly number[])[]): number[][] {
  const following: number[][] = after.map(() => []);
  after.forEach((places, place) => {
    for (const before of places) following[before]?.push(place);
  });
  return following;
}

/** A node of the picture: one step, or several alike that are folded into one. */
export interface GraphNode {
  id: string;
  label: string;
  steps: number[];
}

export interface FoldedGraph {
  nodes: GraphNode[];
  after: number[][];
  /** The node of each step. */
  nodeOf: Int32Array;
}

/** Fewer steps than this are not worth folding. */
const FOLD_LEAST = 6;

/**
 * Folds steps of the same task, with names that differ only in numbers, that come after the same things. Steps that
 * come after folded steps fold as well, so a thousand parallel chains become one chain.
 */
export function foldGraph(steps: readonly GraphStep[], isFolding: boolean, opened: ReadonlySet<string> = new Set()): FoldedGraph {
  const arrows = arrowsOf(steps);
  const shapes = new Map<string, number>();
  const shapeOf = new Int32Array(steps.length);
  const members: number[][] = [];
  for (const place of inOrder(arrows)) {
    const step = steps[place];
    if (!step) continue;
    const before = [...new Set((arrows[place] ?? []).map((one) => shapeOf[one] ?? 0))].sort((a, b) => a - b);
    const name = `${step.task}\n${stemOf(step.key)}\n${before.join(",")}`;
    let shape = shapes.get(name);
    if (shape === undefined) {
      shape = members.length;
      shapes.set(name, shape);
      members.push([]);
    }
    shapeOf[place] = shape;
    members[shape]?.push(place);
  }
  const nodes: GraphNode[] = [];
  const nodeOf = new Int32Array(steps.length);
  steps.forEach((step, place) => {
    const shape = shapeOf[place] ?? 0;
    const alike = members[shape] ?? [];
    const first = alike[0] ?? place;
    const id = `${steps[first]?.key ?? ""}…`;
    if (!isFolding || alike.length < FOLD_LEAST || opened.has(id)) {
      nodeOf[place] = nodes.length;
      nodes.push({ id: step.key, label: step.key, steps: [place] });
    } else if (place === first) {
      for (const one of alike) nodeOf[one] = nodes.length;
      nodes.push({ id, label: stemOf(step.key) || step.task, steps: alike });
    }
  });
  // An arrow inside a folded group would be a circle: such groups are of one depth, so there is none.
  const after = nodes.map((node) => [...new Set(node.steps.flatMap((place) => (arrows[place] ?? []).map((one) => nodeOf[one] ?? 0)))]);
  return { nodes, after, nodeOf };
}

function stemOf(key: string): string {
  return key.replace(/\d+/g, "").replace(/[-_.:/ ]+$/g, "");
}

/** Every place after those that it waits for. */
export function inOrder(after: readonly (readonly number[])[]): number[] {
  const depths = depthsOf(after);
  return after.map((_, place) => place).sort((a, b) => (depths[a] ?? 0) - (depths[b] ?? 0) || a - b);
}

export interface Timed {
  started_at?: string | null;
  finished_at?: string | null;
}

/**
 * The steps that decided when the workflow ended, or that it waits for now: from the last one back, always to the
 * one that it had to wait for longest.
 */
export function criticalPath(after: readonly (readonly number[])[], times: readonly (Timed | undefined)[], now: number): number[] {
  const endOf = (place: number): number => {
    const time = times[place];
    if (!time?.started_at) return Number.NEGATIVE_INFINITY;
    return time.finished_at ? Date.parse(time.finished_at) : now;
  };
  const latest = (places: readonly number[]) =>
    places.reduce<number | null>((best, place) => (endOf(place) > (best === null ? Number.NEGATIVE_INFINITY : endOf(best)) ? place : best), null);
  const path: number[] = [];
  for (let place = latest(after.map((_, index) => index)); place !== null; place = latest(after[place] ?? [])) path.push(place);
  return path.reverse();
}
