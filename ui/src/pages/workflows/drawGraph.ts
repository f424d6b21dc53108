import type { Frame } from "~/components/canvasFrames";
import { type IconName, PATHS } from "~/components/Icon";
import { type Layout, NODE_HEIGHT, NODE_WIDTH } from "~/model/layeredLayout";
import { ICONS, type RunState } from "~/model/states";

/** What the picture shows of a node. */
export interface NodeLook {
  label: string;
  below: string;
  state: RunState;
  /** Counts by outcome, for maps and folded steps: drawn as a ring. */
  ring: { succeeded: number; failed: number; other: number; total: number } | null;
  marks: string[];
  isFolded: boolean;
}

export interface View {
  scale: number;
  left: number;
  top: number;
}

export interface Picture {
  layout: Layout;
  nodes: readonly NodeLook[];
  after: readonly (readonly number[])[];
  selected: number;
  hovered: number;
  /** If set, only these stand out. */
  marked: ReadonlySet<number> | null;
  critical: ReadonlySet<number> | null;
}

const icons = new Map<IconName, Path2D>();

function icon(name: IconName): Path2D {
  let path = icons.get(name);
  if (!path) {
    path = new Path2D(PATHS[name]);
    icons.set(name, path);
  }
  return path;
}

const shortened = new Map<string, string>();

function fitting(context: CanvasRenderingContext2D, words: string, room: number): string {
  const key = `${context.font}\n${room}\n${words}`;
  let found = shortened.get(key);
  if (found === undefined) {
    found = words.length > 200 ? words.slice(0, 200) : words;
    if (context.measureText(found).width > room) {
      let [low, high] = [0, found.length];
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (context.measureText(`${found.slice(0, middle)}…`).width <= room) low = middle;
        else high = middle - 1;
      }
      found = `${found.slice(0, low)}…`;
    }
    if (shortened.size > 20_000) shortened.clear();
    shortened.set(key, found);
  }
  return found;
}

/** Below these scales, words and details would only be noise. */
const DETAILS_FROM = 0.5;
const WORDS_FROM = 0.28;

export function drawGraph(frame: Frame, view: View, picture: Picture): void {
  const { context, width, height } = frame;
  const { layout, nodes } = picture;
  context.save();
  context.translate(view.left, view.top);
  context.scale(view.scale, view.scale);
  const [left, top] = [-view.left / view.scale, -view.top / view.scale];
  const [right, bottom] = [left + width / view.scale, top + height / view.scale];
  drawArrows(frame, view, picture, { left, top, right, bottom });
  for (let place = 0; place < nodes.length; place += 1) {
    const x = layout.x[place] ?? 0;
    const y = layout.y[place] ?? 0;
    if (x + NODE_WIDTH / 2 < left || x - NODE_WIDTH / 2 > right || y + NODE_HEIGHT < top || y - NODE_HEIGHT > bottom) continue;
    const node = nodes[place];
    if (!node) continue;
    const isDim = (picture.marked !== null && !picture.marked.has(place)) || (picture.critical !== null && !picture.critical.has(place));
    context.globalAlpha = isDim ? 0.3 : 1;
    drawNode(frame, view.scale, node, x - NODE_WIDTH / 2, y - NODE_HEIGHT / 2, place === picture.selected, place === picture.hovered, picture.critical?.has(place) ?? false);
  }
  context.restore();
}

interface Rectangle {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

function drawArrows(frame: Frame, view: View, picture: Picture, seen: Rectangle): void {
  const { context, paint } = frame;
  const { layout, after, selected, hovered, critical } = picture;
  const plain = new Path2D();
  const strong = new Path2D();
  const isCoarse = view.scale < WORDS_FROM;
  for (let place = 0; place < after.length; place += 1) {
    const toX = (layout.x[place] ?? 0) - NODE_WIDTH / 2;
    const toY = layout.y[place] ?? 0;
    for (const before of after[place] ?? []) {
      const fromX = (layout.x[before] ?? 0) + NODE_WIDTH / 2;
      const fromY = layout.y[before] ?? 0;
      if (toX < seen.left || fromX > seen.right || Math.max(fromY, toY) < seen.top || Math.min(fromY, toY) > seen.bottom) {
        if (!layout.bends?.[`${before} ${place}`]) continue;
      }
      const isStrong = place === selected || before === selected || place === hovered || before === hovered || (critical !== null && critical.has(place) && critical.has(before));
      const path = isStrong ? strong : plain;
      path.moveTo(fromX, fromY);
      if (isCoarse && !isStrong) {
        path.lineTo(toX, toY);
        continue;
      }
      const bends = layout.bends?.[`${before} ${place}`];
      if (bends) {
        // Through the middles between bends, so that the line has no corners.
        let [x, y] = [bends[0] ?? 0, bends[1] ?? 0];
        const middle = (fromX + x) / 2;
        path.bezierCurveTo(middle, fromY, middle, y, x, y);
        for (let index = 2; index < bends.length; index += 2) {
          const [nextX, nextY] = [bends[index] ?? 0, bends[index + 1] ?? 0];
          const half = (x + nextX) / 2;
          path.bezierCurveTo(half, y, half, nextY, nextX, nextY);
          [x, y] = [nextX, nextY];
        }
        const last = (x + toX) / 2;
        path.bezierCurveTo(last, y, last, toY, toX, toY);
      } else {
        const reach = Math.max(24, Math.min(120, (toX - fromX) / 2));
        path.bezierCurveTo(fromX + reach, fromY, toX - reach, toY, toX, toY);
      }
      if (!isCoarse) {
        path.moveTo(toX - 6, toY - 4);
        path.lineTo(toX - 0.5, toY);
        path.lineTo(toX - 6, toY + 4);
      }
    }
  }
  context.lineJoin = "round";
  context.lineCap = "round";
  const isDim = critical !== null || picture.marked !== null;
  context.globalAlpha = isDim ? 0.35 : isCoarse ? 0.6 : 1;
  context.strokeStyle = paint("--line-strong");
  context.lineWidth = Math.max(1, 0.6 / view.scale);
  context.globalAlpha *= 0.65;
  context.stroke(plain);
  context.globalAlpha = 1;
  context.strokeStyle = paint("--accent");
  context.lineWidth = Math.max(1.75, 1 / view.scale);
  context.stroke(strong);
}

function drawNode(frame: Frame, scale: number, node: NodeLook, left: number, top: number, isSelected: boolean, isHovered: boolean, isCritical: boolean): void {
  const { context, paint, font } = frame;
  const rectangle = (dx = 0, dy = 0) => {
    context.beginPath();
    context.roundRect(left + dx, top + dy, NODE_WIDTH, NODE_HEIGHT, 9);
  };
  if (scale < WORDS_FROM) {
    context.fillStyle = paint(`--${node.state}-solid`);
    rectangle();
    context.fill();
    if (isSelected || isHovered) {
      context.strokeStyle = paint("--accent");
      context.lineWidth = 2 / scale;
      context.stroke();
    }
    return;
  }
  if (node.isFolded) {
    context.fillStyle = paint("--surface");
    context.strokeStyle = paint("--line-color");
    context.lineWidth = 1;
    for (const shift of [7, 3.5]) {
      rectangle(shift, shift);
      context.fill();
      context.stroke();
    }
  }
  const isQuiet = node.state === "waiting" || node.state === "skipped";
  context.fillStyle = paint(isHovered || isSelected ? "--raised" : "--surface");
  rectangle();
  context.fill();
  context.strokeStyle = paint(isSelected || isCritical ? "--accent" : isHovered ? "--line-strong" : isQuiet ? "--line-color" : `--${node.state}-solid`);
  context.lineWidth = isSelected ? 2.5 : isCritical ? 2 : isQuiet ? 1 : 1.4;
  if (node.state === "skipped") context.setLineDash([4, 3]);
  context.stroke();
  context.setLineDash([]);

  const middle = top + NODE_HEIGHT / 2;
  if (node.ring) drawRing(frame, node, left + 23, middle);
  else {
    context.fillStyle = paint(`--${node.state}-soft`);
    context.beginPath();
    context.arc(left + 23, middle, 12, 0, 2 * Math.PI);
    context.fill();
    context.save();
    context.translate(left + 23 - 7.5, middle - 7.5);
    context.scale(0.75, 0.75);
    context.strokeStyle = paint(`--${node.state}-ink`);
    context.lineWidth = 2.2;
    context.lineCap = "round";
    context.lineJoin = "round";
    context.stroke(icon(ICONS[node.state]));
    context.restore();
  }
  const isDetailed = scale >= DETAILS_FROM && node.below !== "";
  context.textBaseline = "middle";
  context.fillStyle = paint(isQuiet ? "--ink-2" : "--ink");
  context.font = font(13, 500);
  context.fillText(fitting(context, node.label, NODE_WIDTH - 56), left + 43, middle - (isDetailed ? 8 : 0));
  if (isDetailed) {
    context.fillStyle = paint(node.state === "failed" ? "--failed-ink" : "--ink-3");
    context.font = font(11.5);
    context.fillText(fitting(context, node.below, NODE_WIDTH - 56), left + 43, middle + 9);
  }
  if (scale >= DETAILS_FROM) drawMarks(frame, node.marks, left + 14, top);
}

function drawRing(frame: Frame, node: NodeLook, x: number, y: number): void {
  const { context, paint, font } = frame;
  const ring = node.ring;
  if (!ring) return;
  context.lineWidth = 3.5;
  context.lineCap = "butt";
  context.strokeStyle = paint("--line-color");
  context.beginPath();
  context.arc(x, y, 11, 0, 2 * Math.PI);
  context.stroke();
  let from = -Math.PI / 2;
  for (const [count, token] of [[ring.succeeded, "--succeeded-solid"], [ring.failed, "--failed-solid"], [ring.other, "--skipped-solid"]] as const) {
    if (count === 0) continue;
    const to = from + (count / Math.max(1, ring.total)) * 2 * Math.PI;
    context.strokeStyle = paint(token);
    context.beginPath();
    context.arc(x, y, 11, from, to);
    context.stroke();
    from = to;
  }
  const share = Math.floor(((ring.succeeded + ring.failed + ring.other) / Math.max(1, ring.total)) * 100);
  context.fillStyle = paint("--ink-2");
  context.font = font(8, 600);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(String(share), x, y + 0.5);
  context.textAlign = "start";
}

function drawMarks(frame: Frame, marks: readonly string[], left: number, top: number): void {
  const { context, paint, font } = frame;
  context.font = font(10, 500);
  let x = left;
  for (const mark of marks) {
    const words = fitting(context, mark, 140);
    const width = context.measureText(words).width + 10;
    context.fillStyle = paint("--raised");
    context.strokeStyle = paint("--line-color");
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(x, top - 8, width, 15, 7.5);
    context.fill();
    context.stroke();
    context.fillStyle = paint("--ink-2");
    context.textBaseline = "middle";
    context.fillText(words, x + 5, top);
    x += width + 4;
  }
}

/** The node at a point of the canvas; -1 for none. */
export function nodeAt(layout: Layout, view: View, x: number, y: number): number {
  const [atX, atY] = [(x - view.left) / view.scale, (y - view.top) / view.scale];
  for (let place = layout.x.length - 1; place >= 0; place -= 1)
    if (Math.abs((layout.x[place] ?? 0) - atX) <= NODE_WIDTH / 2 && Math.abs((layout.y[place] ?? 0) - atY) <= NODE_HEIGHT / 2) return place;
  return -1;
}

const MARGIN = 36;

/** Shows all of it, but never larger than life. */
export function fitted(layout: Layout, width: number, height: number, most = 1.1): View {
  const scale = Math.min(most, (width - 2 * MARGIN) / Math.max(1, layout.width), (height - 2 * MARGIN) / Math.max(1, layout.height));
  const good = Math.max(scale, SCALE_MIN);
  return { scale: good, left: (width - layout.width * good) / 2, top: (height - layout.height * good) / 2 };
}

export const SCALE_MIN = 0.01;
export const SCALE_MAX = 2.5;

/** The same point stays under the pointer. */
export function zoomed(view: View, factor: number, x: number, y: number): View {
  const scale = Math.max(SCALE_MIN, Math.min(SCALE_MAX, view.scale * factor));
  const ratio = scale / view.scale;
  return { scale, left: x - (x - view.left) * ratio, top: y - (y - view.top) * ratio };
}
