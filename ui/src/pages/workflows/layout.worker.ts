import { Graph, layout } from "@dagrejs/dagre";
import { layered, type Layout, NODE_HEIGHT, NODE_WIDTH } from "~/model/layeredLayout";

export interface LayoutRequest {
  id: number;
  after: number[][];
}
export interface LayoutAnswer extends Layout {
  id: number;
}

/** Above these, dagre takes longer than people like to wait. */
const NODES_MAX = 250;
const ARROWS_MAX = 500;

/** Arrows that avoid the nodes in between. */
function routed(after: readonly (readonly number[])[]): Layout {
  const graph = new Graph<{ rankdir: "LR"; nodesep: number; ranksep: number; edgesep: number }, { width: number; height: number; x?: number; y?: number }, { points?: { x: number; y: number }[] }>();
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 42, edgesep: 12 });
  after.forEach((_, place) => graph.setNode(String(place), { width: NODE_WIDTH, height: NODE_HEIGHT }));
  after.forEach((places, place) => {
    for (const before of places) graph.setEdge(String(before), String(place), {});
  });
  layout(graph as never);
  const x = new Float32Array(after.length);
  const y = new Float32Array(after.length);
  let [width, height] = [0, 0];
  after.forEach((_, place) => {
    const node = graph.node(String(place));
    x[place] = node?.x ?? 0;
    y[place] = node?.y ?? 0;
    width = Math.max(width, (node?.x ?? 0) + NODE_WIDTH / 2);
    height = Math.max(height, (node?.y ?? 0) + NODE_HEIGHT / 2);
  });
  const bends: Record<string, number[]> = {};
  for (const { v, w } of graph.edges()) {
    const points = (graph.edge(v, w)?.points ?? []).slice(1, -1);
    // One bend in the middle is the straight way.
    if (points.length > 1) bends[`${v} ${w}`] = points.flatMap((point) => [point.x, point.y]);
  }
  return { x, y, width, height, bends };
}

self.onmessage = ({ data: { id, after } }: MessageEvent<LayoutRequest>) => {
  const arrows = after.reduce((sum, places) => sum + places.length, 0);
  const found = after.length <= NODES_MAX && arrows <= ARROWS_MAX ? routed(after) : layered(after);
  self.postMessage({ id, ...found } satisfies LayoutAnswer, { transfer: [found.x.buffer, found.y.buffer] });
};
