import { useSyncExternalStore } from "react";

/** One timer for all times on the page. It follows the server's clock if this machine's is wrong. */
let skew = 0;
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function tick(): void {
  if (document.hidden) return;
  now = Date.now() + skew;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now() + skew;
    timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
      document.removeEventListener("visibilitychange", tick);
    }
  };
}

/** The server's time in milliseconds, once a second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

export function serverNow(): number {
  return Date.now() + skew;
}

export function noteServerTime(at: number): void {
  const found = at - Date.now();
  // Smaller differences are the way of the answer, not the clock.
  skew = Math.abs(found) > 2000 ? found : 0;
}
