import { type FilterKey, freeText, type Term } from "./filter";
import { STATES } from "./states";
import { parseDuration } from "./times";

/** State words that the API takes besides the states themselves. */
const STATUSES = ["pending", "retrying", "completed", "lost"];

export interface RunFilterTexts {
  keys: Record<string, string>;
  notAState: (word: string) => string;
  notADuration: (word: string) => string;
  notANumber: (word: string) => string;
  notATime: (word: string) => string;
}

const LENGTH = "\\d{1,9}(?:\\.\\d{1,3})?(?:ms|s|m|h|d)?";
const DURATION_RANGE = new RegExp(`^(?:(?:>=|<=|>|<)?${LENGTH}|${LENGTH}\\.\\.${LENGTH})$`);
const NUMBER_RANGE = /^(?:(?:>=|<=|>|<)?-?\d{1,9}|-?\d{1,9}\.\.-?\d{1,9})$/;

export function isTime(word: string): boolean {
  return parseDuration(word) !== null || (/^\d{4}-\d\d-\d\dT/.test(word) && !Number.isNaN(Date.parse(word)));
}

/** The filter language of runs. Each key is a filter of `GET /v1/runs`. */
export function runFilterKeys(texts: RunFilterTexts): FilterKey[] {
  const states = new Set<string>([...STATES, ...STATUSES]);
  const fits = (pattern: RegExp, told: (word: string) => string) => (word: string) => (pattern.test(word) ? null : told(word));
  const hint = (name: string) => texts.keys[name] ?? "";
  return [
    { name: "state", hint: hint("state"), isMany: true, isNegatable: true, check: (word) => (states.has(word) ? null : texts.notAState(word)) },
    { name: "queue", hint: hint("queue"), isMany: true, isNegatable: true },
    { name: "task", hint: hint("task"), isMany: true, isNegatable: true },
    { name: "job", hint: hint("job") },
    { name: "parent", hint: hint("parent") },
    { name: "tag", hint: hint("tag"), isMany: true, isNegatable: true },
    { name: "worker", hint: hint("worker"), isMany: true, isNegatable: true },
    { name: "error", hint: hint("error"), isNegatable: true },
    { name: "reason", hint: hint("reason"), isMany: true, isNegatable: true },
    { name: "attempt", hint: hint("attempt"), check: fits(NUMBER_RANGE, texts.notANumber) },
    { name: "duration", hint: hint("duration"), check: fits(DURATION_RANGE, texts.notADuration) },
    { name: "priority", hint: hint("priority"), check: fits(NUMBER_RANGE, texts.notANumber) },
    { name: "payload", hint: hint("payload"), hasPath: true },
    { name: "since", hint: hint("since"), check: (word) => (isTime(word) ? null : texts.notATime(word)) },
    { name: "until", hint: hint("until"), check: (word) => (isTime(word) ? null : texts.notATime(word)) },
  ];
}

export type RunQuery = Record<string, string | string[]>;

/** The parameters of `GET /v1/runs`, and the filter of bulk actions. Terms with errors are left out. */
export function runQuery(terms: readonly Term[]): RunQuery {
  const query: RunQuery = {};
  const payload: string[] = [];
  for (const term of terms) {
    if (term.key === "" || term.error) continue;
    if (term.key === "payload") payload.push(`${term.path}:${term.values[0] ?? ""}`);
    else query[term.isNegated ? `not_${term.key}` : term.key] = term.values.join(",");
  }
  if (payload.length > 0) query.payload = payload;
  const text = freeText(terms.filter((term) => !term.error)).trim();
  if (text) query.text = text;
  return query;
}
