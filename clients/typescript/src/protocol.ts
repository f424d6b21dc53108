/** The messages of the worker protocol: see docs/worker-protocol.md. */

import type { Json, JsonObject } from "./connection.js";

export interface Settings {
  namespace: string;
  lease_seconds: number;
  beat_seconds: number;
  wait_seconds: number;
  retries: number;
  timeout_seconds: number;
  result_max_bytes: number;
  output_max_bytes: number;
}

export interface Options extends JsonObject {
  retries: number;
  timeout_seconds: number;
}

export interface Claim {
  run_id: string;
  token: number;
  queue: string;
  task: string;
  attempt: number;
  lost?: number;
  payload?: JsonObject;
  options?: JsonObject;
  has_upstream?: boolean;
  concerns_others?: boolean;
  is_disabled?: boolean;
}

export interface End {
  run_id: string;
  token: number;
  is_lost?: boolean;
  reason?: string;
  message?: string;
}

export interface Beat {
  is_renewed: boolean;
  end?: End[];
  is_draining?: boolean;
  owns_unheld?: boolean;
}

export interface AttemptError {
  kind: string;
  message: string;
  traceback?: string;
}

export interface Ended {
  run_id: string;
  token: number;
  ending: "succeeded" | "failed" | "timeout" | "cancelled" | "skipped" | "snoozed" | "released";
  attempt?: number;
  lost?: number;
  options?: JsonObject;
  result?: Json;
  error?: AttemptError;
  output?: string;
  reason?: string;
  delay_seconds?: number;
  is_retryable?: boolean;
}

export interface Upstream {
  runs: { run_id: string; results?: { key: string; state: string; result?: Json }[] }[];
}
