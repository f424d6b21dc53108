import { useSyncExternalStore } from "react";

export type Overlay = "palette" | "help" | null;

let open: Overlay = null;
let prefix = "";
const listeners = new Set<() => void>();

/** `start`: what the palette's field begins with, such as ">". */
export function openOverlay(next: Overlay, start = ""): void {
  open = next;
  prefix = start;
  for (const listener of listeners) listener();
}

export function overlayStart(): string {
  return prefix;
}

export function useOverlay(): Overlay {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => open,
  );
}
