import { useEffect, useRef } from "react";
import { hasChanges, onPulse } from "./pulse";

/** Calls `refresh` while the page is visible and live, after each pulse that may concern it, not more often than given. */
export function useLiveRefresh(refresh: () => void, { every = 1_000, isOn = true }: { every?: number; isOn?: boolean } = {}): void {
  const latest = useRef(refresh);
  latest.current = refresh;
  useEffect(() => {
    if (!isOn) return;
    let last = 0;
    let isDue = false;
    return onPulse((pulse) => {
      isDue ||= hasChanges(pulse);
      const now = performance.now();
      // Once in a while in any case: not everything is in the pulse.
      if (document.hidden || now - last < every - 50 || (!isDue && now - last < 15_000)) return;
      isDue = false;
      last = now;
      latest.current();
    });
  }, [every, isOn]);
}
