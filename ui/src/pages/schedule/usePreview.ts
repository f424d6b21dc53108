import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { key } from "~/api/queries";

const TYPING_MS = 250;

/** What the server says about a schedule, once typing pauses. */
export function usePreview(body: Record<string, unknown>) {
  const encoded = JSON.stringify(body);
  const [asked, setAsked] = useState(encoded);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(encoded), TYPING_MS);
    return () => clearTimeout(timer);
  }, [encoded]);
  const found = useQuery({
    queryKey: key("preview", asked),
    queryFn: () => data(client.POST("/v1/schedules/preview", { body: JSON.parse(asked) as never })),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 60_000,
  });
  return {
    preview: found.error ? undefined : found.data,
    isOld: found.isFetching || asked !== encoded,
    /** Of what is typed now; while it is being looked at, nobody knows. */
    problem: found.error && asked === encoded ? asApiError(found.error) : null,
  };
}
