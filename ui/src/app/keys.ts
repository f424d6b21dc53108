import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { IconName } from "~/components/Icon";
import { toggleLive } from "~/live/pulse";
import { preferences } from "~/model/preferences";
import type { ZoneChoice } from "~/model/times";
import { openOverlay } from "./overlayState";
import { NAVIGATION } from "./pages";
import { useChooseZone } from "./TopBar";
import { useZoneChoice } from "./useZone";

export interface KeyAction {
  /** Such as "t", "?" or "Shift x". Without one, only the palette offers the action. */
  key?: string;
  run: () => void;
  /** With a label, the palette offers it among the actions of the page. */
  label?: string;
  icon?: IconName;
}

const stack: { readonly current: KeyAction[] }[] = [];

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Keys and actions of a page or list, while it is shown. The latest one that knows a key gets it. */
export function useKeys(actions: KeyAction[]): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    stack.push(latest);
    return () => {
      stack.splice(stack.indexOf(latest), 1);
    };
  }, []);
}

/** What the current page offers, for the palette. */
export function pageActions(): KeyAction[] {
  return [...stack].reverse().flatMap((actions) => actions.current.filter((one) => one.label));
}

const NEXT_ZONE: Record<ZoneChoice, ZoneChoice> = { local: "utc", utc: "job", job: "local" };

export function useGlobalKeys(): void {
  const navigate = useNavigate();
  const zone = useZoneChoice();
  const chooseZone = useChooseZone();
  // When g was pressed. Zero would be the moment at which the page was opened.
  const going = useRef(Number.NEGATIVE_INFINITY);
  useKeys([
    { key: "?", run: () => openOverlay("help") },
    { key: "l", run: toggleLive },
    { key: "z", run: () => chooseZone(NEXT_ZONE[zone]) },
    { key: "/", run: () => document.querySelector<HTMLElement>("[data-filter]")?.focus() },
    { key: ".", run: () => openOverlay("palette", ">") },
  ]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openOverlay("palette");
        return;
      }
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (!preferences().keys || document.querySelector("dialog[open]")) return;
      // Enter on a button or link is for that one, and not for the row that was chosen before.
      if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary, [role=slider]")) return;
      if (performance.now() - going.current < 1200) {
        going.current = Number.NEGATIVE_INFINITY;
        const place = NAVIGATION.find((one) => one.go === event.key);
        if (place) {
          event.preventDefault();
          void navigate({ to: place.to as never });
          return;
        }
      }
      if (event.key === "g") {
        going.current = performance.now();
        return;
      }
      const pressed = event.shiftKey && /^[a-z]$/i.test(event.key) ? `Shift ${event.key.toLowerCase()}` : event.key;
      for (const actions of [...stack].reverse()) {
        const action = actions.current.find((one) => one.key === pressed);
        if (action) {
          event.preventDefault();
          action.run();
          return;
        }
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [navigate]);
}
