import { queryOptions, useQuery } from "@tanstack/react-query";
import { noteServerTime } from "~/model/clock";
import { PREFIX } from "./client";
import { currentNamespace } from "./namespace";
import { ApiError, problemOf } from "./problems";
import { key } from "./queries";

export type Permission = "view" | "submit" | "drain" | "operate" | "administer";

export interface Session {
  mode: "open" | "token";
  version: string;
  is_signed_in: boolean;
  name: string | null;
  role: string | null;
  scope: string | null;
  namespace: string | null;
  permissions: Permission[];
  sign_in_refusal: string | null;
  now?: string;
}

const ALL: Permission[] = ["view", "submit", "drain", "operate", "administer"];
/** A server without sessions is an open one, or answers everything else with 401. */
const WITHOUT_SESSIONS: Session = {
  mode: "open", version: "", is_signed_in: true, name: "local", role: "admin", scope: "*", namespace: "default", permissions: ALL, sign_in_refusal: null,
};

async function ask(): Promise<Session> {
  const namespace = currentNamespace();
  let answer: Response;
  try {
    answer = await fetch(`${PREFIX}/v1/session`, { headers: namespace ? { "Foliot-Namespace": namespace } : {} });
  } catch {
    throw ApiError.unreachable();
  }
  if (answer.status === 404) return WITHOUT_SESSIONS;
  const body: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw problemOf(answer, body);
  const session = body as Session;
  if (session.now) noteServerTime(Date.parse(session.now));
  return session;
}

export const sessionQuery = () => queryOptions({ queryKey: key("session"), queryFn: ask, staleTime: 60_000 });

export function useSession(): Session | undefined {
  return useQuery(sessionQuery()).data;
}

/** Whether the caller's role allows it. What one may never do is not shown. */
export function useMay(permission: Permission): boolean {
  return useSession()?.permissions.includes(permission) ?? false;
}
