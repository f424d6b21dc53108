import { type KeyboardEvent, type PointerEvent, useCallback, useEffect, useRef, useState } from "react";
import { IconButton } from "~/components/Button";
import { useFrames } from "~/components/canvasFrames";
import { classes } from "~/components/classes";
import { type Layout, NODE_HEIGHT, NODE_WIDTH } from "~/model/layeredLayout";
import { text } from "~/texts/en";
import { drawGraph, fitted, nodeAt, type NodeLook, type View, zoomed } from "./drawGraph";
import styles from "./GraphTab.module.css";

const { graph: words } = text.workflows;

interface Properties {
  label: string;
  layout: Layout;
  nodes: readonly NodeLook[];
  after: readonly (readonly number[])[];
  selected: number;
  marked: ReadonlySet<number> | null;
  critical: ReadonlySet<number> | null;
  /** Keeps these in view while they change. */
  followed: readonly number[] | null;
  onSelect: (place: number) => void;
  onOpen: (place: number) => void;
  onMove: () => void;
}

/** The graph as a picture to move and zoom in. The list beside it is its equal for keyboards and screen readers. */
export function GraphCanvas({ label, layout, nodes, after, selected, marked, critical, followed, onSelect, onOpen, onMove }: Properties) {
  const view = useRef<View | null>(null);
  const [hovered, setHovered] = useState(-1);
  const pressed = useRef<{ x: number; y: number; hasMoved: boolean } | null>(null);
  const moving = useRef(0);
  const { ref, redraw } = useFrames((frame) => {
    view.current ??= first(layout, nodes, frame.width, frame.height);
    drawGraph(frame, view.current, { layout, nodes, after, selected, hovered, marked, critical });
  });

  useEffect(() => {
    // Another layout: what was in view may be elsewhere.
    view.current = null;
    redraw();
  }, [layout, redraw]);

  const go = useCallback(
    (to: View) => {
      cancelAnimationFrame(moving.current);
      const from = view.current;
      if (!from || window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
        view.current = to;
        redraw();
        return;
      }
      const began = performance.now();
      const step = (now: number) => {
        const t = Math.min(1, (now - began) / 260);
        const eased = 1 - (1 - t) ** 3;
        const scale = from.scale * (to.scale / from.scale) ** eased;
        view.current = { scale, left: from.left + (to.left - from.left) * eased, top: from.top + (to.top - from.top) * eased };
        redraw();
        if (t < 1) moving.current = requestAnimationFrame(step);
      };
      moving.current = requestAnimationFrame(step);
    },
    [redraw],
  );

  const show = useCallback(
    (places: readonly number[], isGentle: boolean) => {
      const canvas = ref.current;
      const now = view.current;
      if (!canvas || !now || places.length === 0) return;
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      const xs = places.map((place) => layout.x[place] ?? 0);
      const ys = places.map((place) => layout.y[place] ?? 0);
      const [left, right] = [least(xs) - NODE_WIDTH / 2, most(xs) + NODE_WIDTH / 2];
      const [top, bottom] = [least(ys) - NODE_HEIGHT / 2, most(ys) + NODE_HEIGHT / 2];
      const isSeen = left * now.scale + now.left > 0 && right * now.scale + now.left < width && top * now.scale + now.top > 0 && bottom * now.scale + now.top < height;
      if (isSeen && isGentle && now.scale > 0.3) return;
      const room = Math.min((width - 80) / (right - left), (height - 80) / (bottom - top));
      const scale = Math.min(room, Math.max(now.scale, 0.6), 1.2);
      go({ scale, left: width / 2 - ((left + right) / 2) * scale, top: height / 2 - ((top + bottom) / 2) * scale });
    },
    [layout, go, ref],
  );
  useEffect(() => {
    if (selected >= 0) show([selected], true);
  }, [selected, show]);
  const follow = followed?.join(" ");
  useEffect(() => {
    if (follow) show(follow.split(" ").map(Number), true);
  }, [follow, show]);
  useEffect(() => {
    if (marked && marked.size > 0 && marked.size < 40) show([...marked], true);
  }, [marked, show]);

  useEffect(() => {
    const canvas = ref.current;
    if (!canvas) return;
    // React's own listener could not keep the page from scrolling.
    const onWheel = (event: WheelEvent) => {
      if (!view.current) return;
      event.preventDefault();
      onMove();
      const { left, top } = canvas.getBoundingClientRect();
      const lines = event.deltaMode === 1 ? 16 : 1;
      view.current = zoomed(view.current, Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 420)), event.clientX - left, event.clientY - top);
      redraw();
    };
    canvas.addEventListener("wheel", onWheel, { passive: false });
    return () => canvas.removeEventListener("wheel", onWheel);
  }, [ref, redraw, onMove]);

  const at = (event: { clientX: number; clientY: number }) => {
    const canvas = ref.current;
    if (!canvas || !view.current) return -1;
    const { left, top } = canvas.getBoundingClientRect();
    return nodeAt(layout, view.current, event.clientX - left, event.clientY - top);
  };
  const onPointerMove = (event: PointerEvent) => {
    const start = pressed.current;
    if (!start) {
      setHovered(at(event));
      return;
    }
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (!start.hasMoved && Math.hypot(dx, dy) < 4) return;
    start.hasMoved = true;
    [start.x, start.y] = [event.clientX, event.clientY];
    if (view.current) view.current = { ...view.current, left: view.current.left + dx, top: view.current.top + dy };
    onMove();
    redraw();
  };
  const middle = (factor: number) => {
    const canvas = ref.current;
    if (canvas && view.current) go(zoomed(view.current, factor, canvas.clientWidth / 2, canvas.clientHeight / 2));
  };
  const fit = () => {
    const canvas = ref.current;
    if (canvas) go(fitted(layout, canvas.clientWidth, canvas.clientHeight));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const shift: Record<string, [number, number]> = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] };
    const by = shift[event.key];
    if (by && view.current) {
      view.current = { ...view.current, left: view.current.left + by[0], top: view.current.top + by[1] };
      redraw();
    } else if (event.key === "+" || event.key === "=") middle(1.3);
    else if (event.key === "-") middle(1 / 1.3);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  };
  return (
    <div className={styles.picture}>
      <canvas
        ref={ref}
        role="img"
        tabIndex={0}
        aria-label={label}
        className={classes(styles.canvas, hovered >= 0 && styles.pointing)}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          pressed.current = { x: event.clientX, y: event.clientY, hasMoved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={onPointerMove}
        onPointerUp={(event) => {
          const hasMoved = pressed.current?.hasMoved ?? true;
          pressed.current = null;
          if (!hasMoved) onSelect(at(event));
        }}
        onPointerLeave={() => setHovered(-1)}
        onDoubleClick={(event) => {
          const place = at(event);
          if (place >= 0) onOpen(place);
        }}
      />
      <div className={styles.zoom}>
        <IconButton icon="plus" size="small" label={words.zoomIn} onClick={() => middle(1.4)} />
        <IconButton icon="minus" size="small" label={words.zoomOut} onClick={() => middle(1 / 1.4)} />
        <IconButton icon="fit" size="small" label={words.fit} onClick={fit} />
      </div>
    </div>
  );
}

/** All of it; or, if that would be too small to read, the part that needs a look. */
function first(layout: Layout, nodes: readonly NodeLook[], width: number, height: number): View {
  const whole = fitted(layout, width, height);
  if (whole.scale >= READABLE) return whole;
  const states = nodes.map((node) => node.state);
  const place = Math.max(0, states.includes("failed") ? states.indexOf("failed") : states.indexOf("running"));
  const scale = COMFORTABLE;
  const within = (at: number, size: number, room: number) => (size * scale + 72 <= room ? (room - size * scale) / 2 : Math.min(36, Math.max(room - size * scale - 36, room / 2 - at * scale)));
  return { scale, left: within(layout.x[place] ?? 0, layout.width, width), top: within(layout.y[place] ?? 0, layout.height, height) };
}

const READABLE = 0.62;
const COMFORTABLE = 0.8;
const least = (values: readonly number[]) => values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const most = (values: readonly number[]) => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
