import { useSearch } from "@tanstack/react-router";
import { usePreferences } from "~/model/preferences";
import type { ZoneChoice } from "~/model/times";

/** The zone of the page's URL, else the preferred one. */
export function useZoneChoice(): ZoneChoice {
  const inUrl = useSearch({ strict: false, select: (search: { zone?: ZoneChoice }) => search.zone });
  const { zone } = usePreferences();
  return inUrl ?? zone;
}
