import { lazy, Suspense } from "react";
import { openOverlay, useOverlay } from "./overlayState";

const Palette = lazy(() => import("./Palette").then((module) => ({ default: module.Palette })));
const Help = lazy(() => import("./Help").then((module) => ({ default: module.Help })));

export function Overlays() {
  const open = useOverlay();
  const close = () => openOverlay(null);
  return (
    <Suspense fallback={null}>
      {open === "palette" && <Palette onClose={close} />}
      {open === "help" && <Help onClose={close} />}
    </Suspense>
  );
}
