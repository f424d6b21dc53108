import { describe, expect, it } from "vitest";
import { layered, NODE_HEIGHT, settle } from "./layeredLayout";
import { arrowsOf, criticalPath, depthsOf, foldGraph, type GraphStep, inOrder } from "./workflowGraph";

const step = (key: string, after: number[] = [], more: Partial<GraphStep> = {}): GraphStep => ({ key, task: "work", after, ...more });

/** Many parallel chains between one beginning and one end. */
function chains(count: number, length: number): GraphStep[] {
  const steps = [step("begin")];
  const ends: number[] = [];
  for (let chain = 0; chain < count; chain += 1) {
    let before = 0;
    for (let link = 0; link < length; link += 1) {
      steps.push(step(`${"abcdefgh"[link]}-${chain}`, [before]));
      before = steps.length - 1;
    }
    ends.push(before);
  }
  steps.push(step("end", ends));
  return steps;
}

describe("arrows", () => {
  it("lead from the last steps to a teardown that waits for everything", () => {
    expect(arrowsOf([step("a"), step("b", [0]), step("c"), step("tidy", [], { is_teardown: true })])).toEqual([[], [0], [], [1, 2]]);
  });
});

describe("order", () => {
  it("is by the longest way", () => {
    const after = [[], [0], [0, 1], [2, 0]];
    expect([...depthsOf(after)]).toEqual([0, 1, 2, 3]);
    expect(inOrder([[1], [], [0]])).toEqual([1, 0, 2]);
  });
});

describe("folding", () => {
  it("makes one chain of a thousand parallel ones", () => {
    const folded = foldGraph(chains(1000, 3), true);
    expect(folded.nodes.map((node) => [node.label, node.steps.length])).toEqual([["begin", 1], ["a", 1000], ["b", 1000], ["c", 1000], ["end", 1]]);
    expect(folded.after).toEqual([[], [0], [1], [2], [3]]);
  });
  it("opens a group that somebody has opened, and keeps the others folded", () => {
    const folded = foldGraph(chains(10, 2), true, new Set(["a-0…"]));
    expect(folded.nodes.filter((node) => node.label.startsWith("a-"))).toHaveLength(10);
    expect(folded.nodes.find((node) => node.label === "b")?.steps).toHaveLength(10);
  });
  it("leaves few alike, other tasks and other predecessors apart", () => {
    const steps = [step("a"), ...[0, 1, 2, 3, 4, 5, 6].map((n) => step(`x${n}`, n < 4 ? [0] : []))];
    expect(foldGraph(steps, true).nodes).toHaveLength(8);
    expect(foldGraph(chains(50, 2), false).nodes).toHaveLength(102);
  });
});

describe("the critical path", () => {
  it("follows what each step had to wait for", () => {
    const at = (from: number, to: number | null) => ({ started_at: new Date(from).toISOString(), finished_at: to === null ? null : new Date(to).toISOString() });
    const after = [[], [], [0, 1], [2], [2]];
    expect(criticalPath(after, [at(0, 5), at(0, 9), at(9, 10), at(10, 12), at(10, 30)], 50)).toEqual([1, 2, 4]);
    expect(criticalPath(after, [at(0, 5), at(0, 9), at(9, 10), at(10, null), at(10, 30)], 50)).toEqual([1, 2, 3]);
    expect(criticalPath(after, [], 50)).toEqual([]);
  });
});

describe("the layered layout", () => {
  it("keeps nodes of a layer apart and in the middle of their neighbours", () => {
    const { x, y } = layered([[], [0], [0], [1, 2]]);
    expect(x[0]).toBeLessThan(x[1] ?? 0);
    expect(x[1]).toBe(x[2]);
    expect(Math.abs((y[1] ?? 0) - (y[2] ?? 0))).toBeGreaterThan(NODE_HEIGHT);
    expect(y[3]).toBeCloseTo(((y[1] ?? 0) + (y[2] ?? 0)) / 2, 0);
  });
  it("puts positions as near to the wished ones as their order allows", () => {
    expect(settle([0, 0, 0], 10)).toEqual([-10, 0, 10]);
    expect(settle([0, 50, 51], 10)).toEqual([0, 45.5, 55.5]);
  });
  it("has room for everybody, also with twenty thousand steps", () => {
    const after = arrowsOf(chains(5000, 4));
    const { x, y } = layered(after);
    expect(new Set(x).size).toBe(6);
    const layer = [...y].filter((_, place) => x[place] === x[1]).sort((a, b) => a - b);
    expect(layer).toHaveLength(5000);
    expect(layer.every((at, index) => index === 0 || at - (layer[index - 1] ?? 0) > NODE_HEIGHT)).toBe(true);
  });
});
