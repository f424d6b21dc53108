import { QueryClient, queryOptions } from "@tanstack/react-query";
import { ApiError } from "./problems";
import { client, data } from "./client";
import { currentNamespace } from "./namespace";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      gcTime: 10 * 60_000,
      refetchOnWindowFocus: true,
      retry: (failures, error) => error instanceof ApiError && error.isPassing && failures < 2,
      retryDelay: (failures) => Math.min(500 * 2 ** failures, 8_000),
      networkMode: "always",
    },
    mutations: { networkMode: "always", retry: false },
  },
});

/** Keys start with the namespace, so that nothing of one is shown in another. */
export function key(...parts: unknown[]): unknown[] {
  return [currentNamespace() ?? "", ...parts];
}

export const statsQuery = () => queryOptions({ queryKey: key("stats"), queryFn: () => data(client.GET("/v1/stats")) });
export const pausesQuery = () => queryOptions({ queryKey: key("pauses"), queryFn: () => data(client.GET("/v1/pauses")) });
