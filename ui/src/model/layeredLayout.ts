import { depthsOf, followingOf } from "./workflowGraph";

export const NODE_WIDTH = 176;
export const NODE_HEIGHT = 46;
const GAP_ACROSS = 52;
const GAP_DOWN = 16;
const SWEEPS = 6;

export interface Layout {
  /** The centre of each node. */
  x: Float32Array;
  y: Float32Array;
  width: number;
  height: number;
  /** The bends of each arrow between its ends, as x and y in turn, if the layout has routed it. */
  bends?: Record<string, number[]>;
}

/**
 * A layout from left to right for graphs of any size. Its time grows with the number of arrows: layers by the longest
 * way, sorted by the middle of their neighbours, then placed as near to these as the order allows.
 */
export function layered(after: readonly (readonly number[])[]): Layout {
  const count = after.length;
  const following = followingOf(after);
  const depths = depthsOf(after);
  // What waits for nothing stands right before what follows it.
  for (let place = 0; place < count; place += 1)
    if (after[place]?.length === 0 && (following[place]?.length ?? 0) > 0) {
      let least = Number.POSITIVE_INFINITY;
      for (const next of following[place] ?? []) least = Math.min(least, depths[next] ?? 0);
      depths[place] = least - 1;
    }
  const layers: number[][] = [];
  for (let place = 0; place < count; place += 1) (layers[depths[place] ?? 0] ??= []).push(place);
  const y = new Float32Array(count);
  const step = NODE_HEIGHT + GAP_DOWN;
  for (const layer of layers) layer.forEach((place, index) => (y[place] = (index - (layer.length - 1) / 2) * step));
  const wish = (places: readonly number[], self: number) => {
    if (places.length === 0) return y[self] ?? 0;
    let sum = 0;
    for (const place of places) sum += y[place] ?? 0;
    return sum / places.length;
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    for (const layer of isDown ? layers : [...layers].reverse()) {
      const wished = new Map(layer.map((place) => [place, wish((isDown ? after : following)[place] ?? [], place)]));
      layer.sort((a, b) => (wished.get(a) ?? 0) - (wished.get(b) ?? 0) || a - b);
      settle(layer.map((place) => wished.get(place) ?? 0), step).forEach((at, index) => (y[layer[index] ?? 0] = at));
    }
  }
  const top = y.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
  const x = new Float32Array(count);
  for (let place = 0; place < count; place += 1) {
    x[place] = (depths[place] ?? 0) * (NODE_WIDTH + GAP_ACROSS) + NODE_WIDTH / 2;
    y[place] = (y[place] ?? 0) - top + NODE_HEIGHT / 2;
  }
  const bottom = y.reduce((most, at) => Math.max(most, at), 0);
  return { x, y, width: Math.max(0, layers.length * (NODE_WIDTH + GAP_ACROSS) - GAP_ACROSS), height: count === 0 ? 0 : bottom + NODE_HEIGHT / 2 };
}

/** The positions nearest to the wished ones, in this order and at least `gap` apart. Neighbours in conflict form blocks. */
export function settle(wished: readonly number[], gap: number): number[] {
  const blocks: { sum: number; count: number }[] = [];
  wished.forEach((at, index) => {
    let block = { sum: at - index * gap, count: 1 };
    for (let last = blocks.at(-1); last && last.sum / last.count >= block.sum / block.count; last = blocks.at(-1)) {
      block = { sum: last.sum + block.sum, count: last.count + block.count };
      blocks.pop();
    }
    blocks.push(block);
  });
  const settled: number[] = [];
  for (const block of blocks) for (let index = 0; index < block.count; index += 1) settled.push(block.sum / block.count + settled.length * gap);
  return settled;
}
