import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { usePreferences } from "~/model/preferences";

export type Paint = (token: string) => string;
export type Draw = (context: CanvasRenderingContext2D, width: number, height: number, paint: Paint) => void;

/** Calls `draw` when its size, the theme or `parts` change. `paint("--failed-solid")` is the colour of a token. */
export function useCanvas(draw: Draw, parts: readonly unknown[]): { ref: RefObject<HTMLCanvasElement | null>; width: number } {
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const { theme } = usePreferences();
  const [size, setSize] = useState({ width: 0, height: 0, ratio: 1 });
  const [scheme, setScheme] = useState(0);

  useLayoutEffect(() => {
    const canvas = ref.current;
    if (!canvas) return;
    const measure = () => setSize({ width: canvas.clientWidth, height: canvas.clientHeight, ratio: window.devicePixelRatio || 1 });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(canvas);
    const changed = () => setScheme((before) => before + 1);
    const queries = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"].map((query) => window.matchMedia(query));
    for (const query of queries) query.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      for (const query of queries) query.removeEventListener("change", changed);
    };
  }, []);

  useEffect(() => {
    const canvas = ref.current;
    if (!canvas || size.width === 0) return;
    const context = canvas.getContext("2d");
    if (!context) return;
    canvas.width = Math.round(size.width * size.ratio);
    canvas.height = Math.round(size.height * size.ratio);
    context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    context.clearRect(0, 0, size.width, size.height);
    const known = new Map<string, string>();
    const paint = (token: string) => {
      let found = known.get(token);
      if (found === undefined) {
        // Only a real property resolves light-dark().
        canvas.style.color = `var(${token})`;
        found = getComputedStyle(canvas).color;
        known.set(token, found);
      }
      return found;
    };
    latest.current(context, size.width, size.height, paint);
    canvas.style.color = "";
  }, [size, theme, scheme, ...parts]);
  return { ref, width: size.width };
}

/** A rectangle on whole pixels, with small round corners. */
export function box(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, radius = 1.5): void {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(radius, width / 2, height / 2));
  context.fill();
}
