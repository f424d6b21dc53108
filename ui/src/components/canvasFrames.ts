import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from "react";
import { usePreferences } from "~/model/preferences";
import type { Paint } from "./canvas";

export interface Frame {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  paint: Paint;
  font: (size: number, weight?: number) => string;
}

/** A canvas that is drawn when asked to, at most once a frame: for pictures that move. Colours are read once a theme. */
export function useFrames(draw: (frame: Frame) => void): { ref: RefObject<HTMLCanvasElement | null>; redraw: () => void } {
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const { theme } = usePreferences();
  const state = useRef({ asked: 0, colours: new Map<string, string>(), family: "" });

  const redraw = useCallback(() => {
    if (state.current.asked) return;
    state.current.asked = requestAnimationFrame(() => {
      state.current.asked = 0;
      const canvas = ref.current;
      const context = canvas?.getContext("2d");
      if (!canvas || !context || canvas.clientWidth === 0) return;
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      const { colours } = state.current;
      const paint = (token: string) => {
        let found = colours.get(token);
        if (found === undefined) {
          // Only a real property resolves light-dark().
          canvas.style.color = `var(${token})`;
          found = getComputedStyle(canvas).color;
          canvas.style.color = "";
          colours.set(token, found);
        }
        return found;
      };
      state.current.family ||= getComputedStyle(canvas).fontFamily;
      latest.current({ context, width, height, paint, font: (size, weight = 400) => `${weight} ${size}px ${state.current.family}` });
    });
  }, []);

  useLayoutEffect(() => {
    const canvas = ref.current;
    if (!canvas) return;
    const observer = new ResizeObserver(redraw);
    observer.observe(canvas);
    const changed = () => {
      state.current.colours.clear();
      redraw();
    };
    const queries = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"].map((query) => window.matchMedia(query));
    for (const query of queries) query.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      for (const query of queries) query.removeEventListener("change", changed);
      cancelAnimationFrame(state.current.asked);
      state.current.asked = 0;
    };
  }, [redraw]);
  useEffect(() => {
    state.current.colours.clear();
    redraw();
  }, [theme, redraw]);
  // Whatever the page shows may be in the picture.
  useEffect(redraw);
  return { ref, redraw };
}
