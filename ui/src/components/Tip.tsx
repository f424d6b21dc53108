import { type FocusEvent, type PointerEvent, type ReactNode, useEffect, useRef, useSyncExternalStore } from "react";
import { place } from "./place";
import styles from "./Tip.module.css";

interface Shown {
  content: ReactNode;
  anchor: HTMLElement;
  /** The part of the anchor that it is about, such as a cell of a canvas. */
  at?: DOMRect;
}

const ID = "tip";
const DELAY_MS = 350;
let shown: Shown | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
let lastHidden = 0;
const listeners = new Set<() => void>();

function set(next: Shown | null): void {
  if (!next && shown) lastHidden = performance.now();
  shown?.anchor.removeAttribute("aria-describedby");
  shown = next;
  if (typeof shown?.content === "string" && shown.content !== shown.anchor.getAttribute("aria-label"))
    shown.anchor.setAttribute("aria-describedby", ID);
  for (const listener of listeners) listener();
}

function open(anchor: HTMLElement, content: ReactNode, delay: number): void {
  clearTimeout(timer);
  // Moving along a row of buttons shows the next tip at once.
  const wait = performance.now() - lastHidden < 300 || shown ? 0 : delay;
  timer = setTimeout(() => anchor.isConnected && set({ anchor, content }), wait);
}

/** For a part of a canvas, which changes with the pointer. */
export function showTip(anchor: HTMLElement, content: ReactNode, at: DOMRect): void {
  clearTimeout(timer);
  set({ anchor, content, at });
}

export function hideTip(): void {
  clearTimeout(timer);
  if (shown) set(null);
}

/** The properties of an element that explains itself while it is hovered or focused. */
export function useTip(content: ReactNode) {
  if (!content) return {};
  return {
    onPointerEnter: (event: PointerEvent<HTMLElement>) => {
      if (event.pointerType !== "touch") open(event.currentTarget, content, DELAY_MS);
    },
    onPointerLeave: hideTip,
    onPointerDown: hideTip,
    onFocus: (event: FocusEvent<HTMLElement>) => {
      if (event.currentTarget.matches(":focus-visible")) open(event.currentTarget, content, 0);
    },
    onBlur: hideTip,
  };
}

/** The one floating element for all tips. */
export function TipLayer() {
  const now = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
  const layer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = layer.current;
    if (!element) return;
    if (now) {
      element.showPopover();
      place(element, now.at ?? now.anchor.getBoundingClientRect(), "above", "center");
    } else if (element.matches(":popover-open")) element.hidePopover();
  }, [now]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && hideTip();
    window.addEventListener("keydown", onKey, true);
    window.addEventListener("scroll", hideTip, { capture: true, passive: true });
    return () => {
      window.removeEventListener("keydown", onKey, true);
      window.removeEventListener("scroll", hideTip, true);
    };
  }, []);
  return (
    <div ref={layer} id={ID} role="tooltip" popover="manual" className={styles.tip}>
      {now?.content}
    </div>
  );
}

/** An inside word with its explanation, marked by dots. */
export function Explained({ children, text }: { children: ReactNode; text: ReactNode }) {
  const tip = useTip(text);
  return (
    <span tabIndex={0} className={styles.explained} {...tip}>
      {children}
    </span>
  );
}
