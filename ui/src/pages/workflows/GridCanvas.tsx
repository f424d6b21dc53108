import { type KeyboardEvent, type PointerEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useZoneChoice } from "~/app/useZone";
import { type Frame, useFrames } from "~/components/canvasFrames";
import { hideTip, showTip } from "~/components/Tip";
import { useNow } from "~/model/clock";
import { cellOf, type WholeGrid } from "~/model/gridPages";
import { isState } from "~/model/states";
import { absolute, duration, millis, zoneLabel, zoneName } from "~/model/times";
import { text } from "~/texts/en";
import { stateOfWorkflow } from "./cells";
import type { Grid } from "./queries";
import styles from "./GridPage.module.css";

const { grid: words } = text.workflows;
const CELL = 22;
const HEAD = 68;

type GridRun = Grid["runs"][number];

interface Place {
  /** -1: the run as a whole. */
  row: number;
  column: number;
}

interface Properties {
  grid: WholeGrid<GridRun>;
  label: string;
  onNearEnd: (() => void) | null;
  onOpen: (workflowId: string, step: string | null) => void;
}

/** Only what is in view is drawn, in both directions. Arrow keys move a cursor, which is read out. */
export function GridCanvas({ grid, label, onNearEnd, onOpen }: Properties) {
  const frame = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<Place | null>(null);
  const [told, setTold] = useState("");
  const now = useNow();
  const zone = zoneName(useZoneChoice());
  const narrow = useRef(false);
  const labels = () => (narrow.current ? 116 : 220);
  const { ref, redraw } = useFrames((one) => {
    narrow.current = one.width < 640;
    draw(one, grid, frame.current?.scrollLeft ?? 0, frame.current?.scrollTop ?? 0, labels(), at, now);
  });
  const checkEnd = () => {
    const box = frame.current;
    if (box && onNearEnd && box.scrollLeft + box.clientWidth > labels() + (grid.columns.length - 8) * CELL) onNearEnd();
  };
  useEffect(checkEnd);

  const placeAt = (event: { clientX: number; clientY: number }): Place | null => {
    const canvas = ref.current;
    const box = frame.current;
    if (!canvas || !box) return null;
    const { left, top } = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const column = x < labels() ? -1 : Math.floor((x - labels() + box.scrollLeft) / CELL);
    const row = y < HEAD ? -1 : Math.floor((y - HEAD + box.scrollTop) / CELL);
    return column >= 0 && column < grid.columns.length && row < grid.steps.length ? { row, column } : null;
  };
  const lines = (place: Place): [string, string] => {
    const run = grid.columns[place.column]?.run;
    if (!run) return ["", ""];
    const begun = `${absolute(run.created_at, zone, now)} ${zoneLabel(zone, run.created_at)}`;
    if (place.row < 0) {
      const state = stateOfWorkflow(run);
      return [begun, `${isState(state) ? text.states[state] : state}, ${duration(lengthOf(run, now))}`];
    }
    const cell = cellOf(grid, place.row, place.column);
    const state = cell && isState(cell.state) ? text.states[cell.state] : "";
    return [`${grid.steps[place.row]} · ${begun}`, cell ? [state, cell.seconds === null ? "" : duration(cell.seconds)].filter(Boolean).join(", ") : words.missing];
  };
  const point = (place: Place | null, isTold: boolean) => {
    setAt(place);
    const canvas = ref.current;
    const box = frame.current;
    if (!place || !canvas || !box) {
      hideTip();
      return;
    }
    const [first, second] = lines(place);
    const { left, top } = canvas.getBoundingClientRect();
    const x = left + labels() + place.column * CELL - box.scrollLeft;
    const y = top + (place.row < 0 ? 0 : HEAD + place.row * CELL - box.scrollTop);
    showTip(canvas, <Told first={first} second={second} />, new DOMRect(x, y, CELL, CELL));
    if (isTold) setTold(`${first}: ${second}`);
  };
  // Keys may come faster than frames.
  const wanted = useRef<Place | null>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const from = wanted.current ?? at ?? { row: -1, column: 0 };
    const moves: Record<string, Place> = {
      ArrowLeft: { row: from.row, column: from.column - 1 },
      ArrowRight: { row: from.row, column: from.column + 1 },
      ArrowUp: { row: from.row - 1, column: from.column },
      ArrowDown: { row: from.row + 1, column: from.column },
      Home: { row: from.row, column: 0 },
      End: { row: from.row, column: grid.columns.length - 1 },
      PageDown: { row: from.row + 10, column: from.column },
      PageUp: { row: from.row - 10, column: from.column },
    };
    const to = moves[event.key];
    if (to) {
      event.preventDefault();
      const place = { row: Math.max(-1, Math.min(grid.steps.length - 1, to.row)), column: Math.max(0, Math.min(grid.columns.length - 1, to.column)) };
      reveal(place);
      // After the scrolling, which hides tips.
      wanted.current = place;
      requestAnimationFrame(() => {
        if (wanted.current !== place) return;
        wanted.current = null;
        point(place, true);
      });
    } else if (event.key === "Escape") {
      wanted.current = null;
      hideTip();
    } else if (event.key === "Enter" && (wanted.current ?? at)) {
      event.preventDefault();
      open((wanted.current ?? at) as Place);
    }
  };
  const reveal = (place: Place) => {
    const box = frame.current;
    if (!box) return;
    const left = place.column * CELL;
    box.scrollLeft = Math.max(left + CELL - (box.clientWidth - labels()), Math.min(box.scrollLeft, left));
    const top = Math.max(0, place.row) * CELL;
    box.scrollTop = Math.max(top + CELL - (box.clientHeight - HEAD), Math.min(box.scrollTop, top));
  };
  const open = (place: Place) => {
    const run = grid.columns[place.column]?.run;
    if (run) onOpen(run.id, place.row < 0 || cellOf(grid, place.row, place.column) === null ? null : (grid.steps[place.row] ?? null));
  };
  return (
    <div
      ref={frame}
      className={styles.frame}
      style={{ height: `min(${HEAD + grid.steps.length * CELL + 18}px, max(20rem, calc(100dvh - 15rem)))` }}
      onScroll={() => {
        redraw();
        checkEnd();
      }}
    >
      <div className={styles.sizer} style={{ width: 220 + grid.columns.length * CELL + 24, height: HEAD + grid.steps.length * CELL }}>
        <canvas
          ref={ref}
          className={styles.canvas}
          role="application"
          aria-roledescription="grid"
          aria-label={label}
          tabIndex={0}
          onKeyDown={onKeyDown}
          onPointerMove={(event: PointerEvent) => point(placeAt(event), false)}
          onPointerLeave={() => point(null, false)}
          onBlur={() => point(null, false)}
          onClick={(event) => {
            const place = placeAt(event);
            if (place) open(place);
          }}
        />
      </div>
      <p className="visually-hidden" aria-live="polite">
        {told}
      </p>
    </div>
  );
}

function Told({ first, second }: { first: ReactNode; second: ReactNode }) {
  return (
    <>
      <strong>{first}</strong>
      <br />
      {second}
    </>
  );
}

function lengthOf(run: GridRun, now: number): number {
  return Math.max(0, (run.finished_at ? millis(run.finished_at) : now) - millis(run.created_at)) / 1000;
}

function draw({ context, width, height, paint, font }: Frame, grid: WholeGrid<GridRun>, scrollLeft: number, scrollTop: number, labels: number, at: Place | null, now: number): void {
  const firstColumn = Math.max(0, Math.floor(scrollLeft / CELL));
  const lastColumn = Math.min(grid.columns.length - 1, Math.ceil((scrollLeft + width - labels) / CELL));
  const firstRow = Math.max(0, Math.floor(scrollTop / CELL));
  const lastRow = Math.min(grid.steps.length - 1, Math.ceil((scrollTop + height - HEAD) / CELL));
  const xOf = (column: number) => labels + column * CELL - scrollLeft;
  const yOf = (row: number) => HEAD + row * CELL - scrollTop;

  if (at) {
    context.fillStyle = paint("--hover");
    context.fillRect(xOf(at.column), 0, CELL, height);
    if (at.row >= 0) context.fillRect(0, yOf(at.row), width, CELL);
  }
  for (let column = firstColumn; column <= lastColumn; column += 1)
    for (let row = firstRow; row <= lastRow; row += 1) {
      const cell = cellOf(grid, row, column);
      if (!cell) continue;
      const [x, y] = [xOf(column) + 3, yOf(row) + 3];
      const state = isState(cell.state) ? cell.state : "waiting";
      const isHollow = state === "waiting" || state === "skipped" || state === "scheduled";
      context.beginPath();
      context.roundRect(isHollow ? x + 1 : x, isHollow ? y + 1 : y, CELL - (isHollow ? 8 : 6), CELL - (isHollow ? 8 : 6), 4);
      if (isHollow) {
        context.strokeStyle = paint(`--${state}-solid`);
        context.lineWidth = 1.4;
        context.stroke();
        continue;
      }
      context.fillStyle = paint(`--${state}-solid`);
      context.fill();
      // Red and green must not be all that tells them apart.
      if (state === "failed") {
        context.strokeStyle = paint("--surface");
        context.lineWidth = 1.8;
        context.beginPath();
        context.moveTo(x + 5, y + 5);
        context.lineTo(x + CELL - 11, y + CELL - 11);
        context.moveTo(x + CELL - 11, y + 5);
        context.lineTo(x + 5, y + CELL - 11);
        context.stroke();
      }
    }

  // The names of the steps stay at the left.
  context.fillStyle = paint("--surface");
  context.fillRect(0, HEAD, labels, height);
  if (at && at.row >= 0) {
    context.fillStyle = paint("--hover");
    context.fillRect(0, yOf(at.row), labels, CELL);
  }
  context.font = font(12.5);
  context.textBaseline = "middle";
  for (let row = firstRow; row <= lastRow; row += 1) {
    context.fillStyle = paint(at?.row === row ? "--ink" : "--ink-2");
    context.fillText(shortened(context, grid.steps[row] ?? "", labels - 28), 16, yOf(row) + CELL / 2);
  }
  // The durations stay on top.
  context.fillStyle = paint("--surface");
  context.fillRect(0, 0, width, HEAD);
  const most = grid.columns.reduce((longest, { run }) => Math.max(longest, lengthOf(run, now)), 0.001);
  for (let column = firstColumn; column <= lastColumn; column += 1) {
    const run = grid.columns[column]?.run;
    if (!run) continue;
    if (at?.column === column) {
      context.fillStyle = paint("--hover");
      context.fillRect(xOf(column), 0, CELL, HEAD);
    }
    const state = stateOfWorkflow(run);
    // A root keeps short runs visible beside a very long one.
    const tall = Math.max(3, Math.sqrt(lengthOf(run, now) / most) * (HEAD - 24));
    context.fillStyle = paint(`--${isState(state) ? state : "waiting"}-solid`);
    context.beginPath();
    context.roundRect(xOf(column) + 5, HEAD - 10 - tall, CELL - 10, tall, 2.5);
    context.fill();
  }
  context.fillStyle = paint("--surface");
  context.fillRect(0, 0, labels, HEAD);
  context.fillStyle = paint("--ink-3");
  context.font = font(12);
  context.textBaseline = "middle";
  context.fillText(words.duration, 16, HEAD - 16);
  context.fillText(duration(most), 16, 18);
  context.strokeStyle = paint("--line-soft");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(0, HEAD - 0.5);
  context.lineTo(width, HEAD - 0.5);
  context.moveTo(labels - 0.5, 0);
  context.lineTo(labels - 0.5, height);
  context.stroke();
  if (at) {
    context.strokeStyle = paint("--accent");
    context.lineWidth = 1.5;
    context.beginPath();
    context.roundRect(xOf(at.column) + 1, at.row < 0 ? 3 : yOf(at.row) + 1, CELL - 2, at.row < 0 ? HEAD - 8 : CELL - 2, 5);
    context.stroke();
  }
}

function shortened(context: CanvasRenderingContext2D, words: string, room: number): string {
  let shown = words.slice(0, 80);
  if (shown.length === words.length && context.measureText(shown).width <= room) return shown;
  while (shown.length > 1 && context.measureText(`${shown}…`).width > room) shown = shown.slice(0, -1);
  return `${shown}…`;
}
