import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { SIGNED_OUT } from "~/api/client";
import { queryClient } from "~/api/queries";
import { sessionQuery } from "~/api/session";
import { Unavailable } from "~/components/EmptyState";
import { SignIn } from "./SignIn";

/** Shows the pages to whoever is signed in, and the form to everybody else. The URL stays, so links from mail work. */
export function SignInGate({ children }: { children: ReactNode }) {
  const { data: session, error, refetch } = useQuery({ ...sessionQuery(), refetchInterval: (query) => (query.state.error ? 3_000 : false) });
  useEffect(() => {
    // The token may have been revoked while the page was open.
    const ask = () => void queryClient.invalidateQueries({ queryKey: sessionQuery().queryKey });
    window.addEventListener(SIGNED_OUT, ask);
    return () => window.removeEventListener(SIGNED_OUT, ask);
  }, []);
  if (session?.is_signed_in) return children;
  if (session) return <SignIn session={session} />;
  if (error) return <Unavailable error={error} onRetry={() => void refetch()} />;
  return null;
}
