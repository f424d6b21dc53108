const GAP = 6;
const EDGE = 8;

export type Side = "below" | "above";

/** Puts a floating element next to its anchor, inside the window. It must be shown already, to have a size. */
export function place(floating: HTMLElement, anchor: DOMRect, wanted: Side = "below", align: "start" | "center" | "end" = "start"): void {
  const { width, height } = floating.getBoundingClientRect();
  const room = { below: window.innerHeight - anchor.bottom - GAP - EDGE, above: anchor.top - GAP - EDGE };
  const other: Side = wanted === "below" ? "above" : "below";
  const side = room[wanted] >= height || room[wanted] >= room[other] ? wanted : other;
  const left = align === "start" ? anchor.left : align === "end" ? anchor.right - width : anchor.left + (anchor.width - width) / 2;
  floating.style.left = `${Math.max(EDGE, Math.min(left, window.innerWidth - width - EDGE))}px`;
  floating.style.top = `${side === "below" ? anchor.bottom + GAP : Math.max(EDGE, anchor.top - GAP - height)}px`;
  floating.style.maxHeight = `${Math.max(120, room[side])}px`;
}
