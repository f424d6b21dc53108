import { createRootRoute, retainSearchParams } from "@tanstack/react-router";
import type { ZoneChoice } from "~/model/times";
import { AppShell } from "./AppShell";
import { NotFoundPage } from "./NotFoundPage";

/** The namespace and the zone stay in the URL from page to page. */
export interface RootSearch {
  ns?: string;
  zone?: ZoneChoice;
}

export const rootRoute = createRootRoute({
  validateSearch: (search: Record<string, unknown>): RootSearch => ({
    ...(typeof search.ns === "string" && search.ns ? { ns: search.ns } : {}),
    ...(search.zone === "utc" || search.zone === "local" || search.zone === "job" ? { zone: search.zone } : {}),
  }),
  search: { middlewares: [retainSearchParams<RootSearch>(["ns", "zone"])] },
  component: AppShell,
  notFoundComponent: NotFoundPage,
});
