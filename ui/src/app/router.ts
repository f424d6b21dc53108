import { createRouter } from "@tanstack/react-router";
import { PREFIX } from "~/api/client";
import { PageError } from "./PageError";
import { routes } from "./pages";
import { rootRoute } from "./root";
import { parseSearch, stringifySearch } from "./search";

export const router = createRouter({
  routeTree: rootRoute.addChildren(routes),
  basepath: `${PREFIX}/ui`,
  parseSearch,
  stringifySearch,
  defaultPreload: "intent",
  defaultPreloadDelay: 60,
  scrollRestoration: true,
  defaultPendingMs: 200,
  defaultErrorComponent: PageError,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

// Tests look at every page, those of tomorrow too.
if (typeof document !== "undefined") document.documentElement.dataset.routes = JSON.stringify(routes.map((route) => (route.options as { path?: string }).path));
