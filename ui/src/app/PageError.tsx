import { type ErrorComponentProps, useRouter } from "@tanstack/react-router";
import { useCallback, useEffect } from "react";
import { asApiError } from "~/api/problems";
import { Unavailable } from "~/components/EmptyState";

const PAUSE_MS = 3_000;

interface Preloaded {
  preload?: () => Promise<void>;
}

/** In place of a page whose code could not be loaded, or which has failed. Without a server, it tries again by itself. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const retry = useCallback(async () => {
    for (const { routeId } of router.state.matches) await (router.routesById[routeId].options.component as Preloaded | undefined)?.preload?.();
    await router.invalidate();
    reset();
  }, [router, reset]);
  const isAway = asApiError(error).kind === "unreachable";
  useEffect(() => {
    if (!isAway) return;
    const timer = setInterval(() => void retry(), PAUSE_MS);
    return () => clearInterval(timer);
  }, [isAway, retry]);
  return <Unavailable error={error} onRetry={() => void retry()} />;
}
