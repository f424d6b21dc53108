import { useSyncExternalStore } from "react";
import type { ZoneChoice } from "./times";

export type Theme = "system" | "light" | "dark";
export type Density = "comfortable" | "compact";

export interface Preferences {
  theme: Theme;
  zone: ZoneChoice;
  density: Density;
  /** Whether single keys such as `j` act. */
  keys: boolean;
  wrapLogs: boolean;
  /** Hidden columns of each table. */
  hidden: Record<string, string[]>;
}

const KEY = "foliot.preferences";
const DEFAULTS: Preferences = { theme: "system", zone: "local", density: "comfortable", keys: true, wrapLogs: true, hidden: {} };

let current = read();
const listeners = new Set<() => void>();

function read(): Preferences {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return { ...DEFAULTS, ...(stored && typeof stored === "object" ? stored : {}) };
  } catch {
    return DEFAULTS;
  }
}

export function preferences(): Preferences {
  return current;
}

export function prefer(change: Partial<Preferences>): void {
  current = { ...current, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
  applyTheme();
  for (const listener of listeners) listener();
}

export function applyTheme(): void {
  const root = document.documentElement;
  if (current.theme === "system") delete root.dataset.theme;
  else root.dataset.theme = current.theme;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, preferences);
}
