/** The differences between two versions of a job, field by field. */
import { flatten } from "./flatten";

export interface Definition {
  queue: string;
  priority: number;
  schedule: unknown;
  payload: unknown;
  options: unknown;
  metadata: unknown;
  tags: readonly string[];
}

export interface FieldChange {
  /** Such as "cron" or "payload.customer.id". */
  path: string;
  /** Null where the version does not have the field. */
  before: string | null;
  after: string | null;
}

export function fieldsOf(definition: Definition): Map<string, string> {
  const { schedule, queue, priority, tags, options, payload, metadata } = definition;
  const found = flatten(schedule);
  flatten({ queue, priority, tags: tags.length > 0 ? tags : null }, "", found);
  flatten(options, "", found);
  flatten(payload, "payload", found);
  return flatten(metadata, "metadata", found);
}

export function changesBetween(before: Definition, after: Definition): FieldChange[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((path) => old.get(path) !== now.get(path))
    .map((path) => ({ path, before: old.get(path) ?? null, after: now.get(path) ?? null }));
}

export interface ThreeWay {
  path: string;
  base: string | null;
  theirs: string | null;
  mine: string | null;
}

export function threeVersions(base: Definition, theirs: Definition, mine: Definition): ThreeWay[] {
  const maps = [base, theirs, mine].map(fieldsOf) as [Map<string, string>, Map<string, string>, Map<string, string>];
  const paths = new Set(maps.flatMap((map) => [...map.keys()]));
  return [...paths]
    .map((path) => ({ path, base: maps[0].get(path) ?? null, theirs: maps[1].get(path) ?? null, mine: maps[2].get(path) ?? null }))
    .filter((one) => one.base !== one.theirs || one.base !== one.mine);
}
