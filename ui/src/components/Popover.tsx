import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import { classes } from "./classes";
import { place, type Side } from "./place";
import styles from "./Popover.module.css";

interface Properties {
  isOpen: boolean;
  onClose: () => void;
  anchor: RefObject<HTMLElement | null>;
  children: ReactNode;
  label: string;
  align?: "start" | "end";
  side?: Side;
  /** The element that has focus may stay outside, as in a field with completion. */
  keepsFocus?: boolean;
  role?: string;
  id?: string;
  className?: string;
}

/** A floating panel beside its anchor. It closes on Escape and on a click elsewhere. */
export function Popover({ isOpen, onClose, anchor, children, label, align = "start", side, keepsFocus, role = "dialog", id, className }: Properties) {
  const panel = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const element = panel.current;
    if (!element || !isOpen) return;
    element.showPopover();
    const put = () => anchor.current && place(element, anchor.current.getBoundingClientRect(), side, align);
    put();
    const resized = new ResizeObserver(put);
    resized.observe(element);
    if (!keepsFocus) element.querySelector<HTMLElement>("[data-first],button,input,a,[tabindex='0']")?.focus();
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close.current();
      anchor.current?.focus();
    };
    const onPress = (event: PointerEvent) => {
      const target = event.target as Node;
      if (!element.contains(target) && !anchor.current?.contains(target)) close.current();
    };
    window.addEventListener("keydown", onKey, true);
    window.addEventListener("pointerdown", onPress, true);
    window.addEventListener("resize", put);
    window.addEventListener("scroll", put, { capture: true, passive: true });
    return () => {
      resized.disconnect();
      window.removeEventListener("keydown", onKey, true);
      window.removeEventListener("pointerdown", onPress, true);
      window.removeEventListener("resize", put);
      window.removeEventListener("scroll", put, true);
    };
  }, [isOpen, anchor, align, side, keepsFocus]);
  if (!isOpen) return null;
  return (
    <div ref={panel} id={id} popover="manual" role={role} aria-label={label} className={classes(styles.popover, className)}>
      {children}
    </div>
  );
}
