/** Texts of the comparison of two runs. */
import { number } from "~/model/numbers";

export const words = {
  title: "Compare two runs",
  choose: "Choose two runs in the list, then Compare.",
  toRuns: "Runs",
  swap: "Swap sides",
  field: "Field",
  left: "Left",
  right: "Right",
  none: "–",
  differ: (count: number) => (count === 0 ? "Nothing differs." : count === 1 ? "One field differs." : `${number(count)} fields differ.`),
  same: (count: number) => (count === 1 ? "One field is the same" : `${number(count)} fields are the same`),
  longer: (share: string) => `${share} of the left`,
  fields: {
    state: "State", reason: "Reason", name: "Name", task: "Task", queue: "Queue", priority: "Priority", attempt: "Attempt", worker: "Worker", created: "Created",
    waited: "Waited before the start", took: "Took", tags: "Tags", output: "Output",
  } as Record<string, string>,
};

export const fieldName = (path: string): string => words.fields[path] ?? path.replaceAll("_", " ");
