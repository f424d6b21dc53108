import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { client, data, tagged } from "~/api/client";
import { asApiError } from "~/api/problems";
import { key } from "~/api/queries";
import { type Days, sorted, WEEKDAYS, type Weekday } from "~/model/calendarDays";
import { LOCALE } from "~/model/times";
import { words } from "~/texts/calendars";

const TYPING_MS = 250;
const named = (name: string) => ({ params: { path: { name } } });

export const calendarsQuery = () => queryOptions({ queryKey: key("calendars"), queryFn: () => data(client.GET("/v1/calendars")) });

/** With its ETag, for changes that must not overwrite those of others. */
export const calendarQuery = (name: string) =>
  queryOptions({
    queryKey: key("calendar", name),
    queryFn: async () => {
      const found = await tagged(client.GET("/v1/calendars/{name}", named(name)));
      return { calendar: found.data, etag: found.etag };
    },
  });

export const usersQuery = (name: string) =>
  queryOptions({ queryKey: key("calendar", name, "jobs"), queryFn: () => data(client.GET("/v1/jobs", { params: { query: { calendar: name, limit: 100 } } })) });

/** What a change does to each job, once editing pauses. */
export function useEffects(name: string, days: Days, isOn: boolean) {
  const encoded = JSON.stringify(sorted(days));
  const [asked, setAsked] = useState(encoded);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(encoded), TYPING_MS);
    return () => clearTimeout(timer);
  }, [encoded]);
  const found = useQuery({
    queryKey: key("calendar", name, "effects", asked),
    queryFn: () => data(client.POST("/v1/calendars/{name}/preview", { ...named(name), body: JSON.parse(asked) as never })),
    placeholderData: keepPreviousData,
    // Until then it would be asked about days that are not edited any more.
    enabled: isOn && asked === encoded,
    retry: false,
    staleTime: 60_000,
  });
  return { effects: found.error ? undefined : found.data, isOld: found.isFetching || asked !== encoded || found.isPlaceholderData, problem: found.error && asked === encoded ? asApiError(found.error) : null };
}

export function putCalendar(name: string, days: Days, etag: string | null) {
  return tagged(client.PUT("/v1/calendars/{name}", { params: { path: { name }, header: (etag ? { "If-Match": etag } : { "If-None-Match": "*" }) as never }, body: sorted(days) as never }));
}

export const removeCalendar = (name: string) => data(client.DELETE("/v1/calendars/{name}", named(name)));

export function daysOf(calendar: { timezone: string; dates: string[]; weekdays: string[] }): Days {
  return { timezone: calendar.timezone, dates: calendar.dates, weekdays: WEEKDAYS.filter((day) => calendar.weekdays.includes(day)) as Weekday[] };
}

export const longDay = (date: string) => new Intl.DateTimeFormat(LOCALE, { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" }).format(new Date(`${date}T00:00:00Z`));

/** Such as "every Saturday and Sunday, 12 dates". */
export function daysInWords(days: Days): string {
  const parts = [days.weekdays.length > 0 && words.every(days.weekdays.map((day) => words.weekdays[day] ?? day)), days.dates.length > 0 && words.dates(days.dates.length)];
  return parts.filter(Boolean).join(" · ") || words.nothing;
}

export const todayIn = (zone: string, now: number): string => {
  try {
    return new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(now);
  } catch {
    return new Date(now).toISOString().slice(0, 10);
  }
};
