import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { asApiError } from "~/api/problems";
import { text } from "~/texts/en";
import { Button, IconButton } from "./Button";
import { classes } from "./classes";
import { problemText } from "./ErrorNotice";
import { Icon } from "./Icon";
import styles from "./Toast.module.css";

interface ToastContent {
  message: string;
  kind?: "done" | "problem";
  action?: { label: string; run: () => void };
  seconds?: number;
  /** Runs when the toast goes without its action. */
  onGone?: () => void;
}

interface Toast extends ToastContent {
  id: number;
}

let toasts: Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function change(next: Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function toast(content: ToastContent): number {
  last += 1;
  change([...toasts.slice(-3), { ...content, id: last }]);
  return last;
}

export function toastProblem(error: unknown): void {
  toast({ message: problemText(asApiError(error)), kind: "problem", seconds: 10 });
}

/** Sends after five seconds, unless the user takes it back. Leaving the page sends it at once. */
export function sendUnlessUndone(message: string, send: () => Promise<unknown>, undone: string): void {
  let isDecided = false;
  const go = () => {
    if (isDecided) return;
    isDecided = true;
    window.removeEventListener("pagehide", go);
    send().catch(toastProblem);
  };
  window.addEventListener("pagehide", go);
  toast({
    message,
    seconds: 5,
    onGone: go,
    action: {
      label: text.undo,
      run: () => {
        isDecided = true;
        window.removeEventListener("pagehide", go);
        toast({ message: undone, seconds: 3 });
      },
    },
  });
}

function dismiss(id: number, isGone: boolean): void {
  const found = toasts.find((one) => one.id === id);
  change(toasts.filter((one) => one.id !== id));
  if (isGone) found?.onGone?.();
}

export function ToastLayer() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className={styles.layer} role="status" aria-live="polite">
      {shown.map((one) => (
        <ToastView key={one.id} toast={one} />
      ))}
    </div>
  );
}

function ToastView({ toast: one }: { toast: Toast }) {
  const [isHeld, setHeld] = useState(false);
  const left = useRef((one.seconds ?? (one.action ? 10 : 5)) * 1000);
  useEffect(() => {
    if (isHeld) return;
    const from = performance.now();
    const timer = setTimeout(() => dismiss(one.id, true), left.current);
    return () => {
      clearTimeout(timer);
      left.current = Math.max(800, left.current - (performance.now() - from));
    };
  }, [isHeld, one.id]);
  return (
    <div
      className={classes(styles.toast, one.kind === "problem" && styles.problem)}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <Icon name={one.kind === "problem" ? "warning" : "check"} size={18} />
      <span className={styles.message}>{one.message}</span>
      {one.action && (
        <Button
          size="small"
          onClick={() => {
            dismiss(one.id, false);
            one.action?.run();
          }}
        >
          {one.action.label}
        </Button>
      )}
      <IconButton icon="close" label={text.dismiss} size="small" onClick={() => dismiss(one.id, true)} />
    </div>
  );
}
