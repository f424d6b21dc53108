import { ENDED, isState, type RunState } from "~/model/states";
import { duration, millis } from "~/model/times";
import type { FoldedGraph } from "~/model/workflowGraph";
import { text } from "~/texts/en";
import type { NodeLook } from "./drawGraph";
import type { StepNow, Structure, WorkflowLook } from "./queries";

const { workflows: words } = text;

/** The state that people see: a nested workflow or map that waits for its children is running. */
export function stateOf(now: StepNow | undefined): RunState {
  if (!now) return "waiting";
  if (now.children && !ENDED.has(now.state)) return "running";
  return isState(now.state) ? now.state : "waiting";
}

export function tookOf(now: StepNow | undefined, at: number): string {
  if (!now?.started_at) return "";
  const end = now.finished_at ? millis(now.finished_at) : at;
  return duration(Math.max(0, end - millis(now.started_at)) / 1000);
}

export function doneOf(children: NonNullable<StepNow["children"]>): number {
  return children.succeeded + children.failed + children.cancelled + children.skipped;
}

/** What makes a step special, in a word or two each. */
export function marksOf(step: Structure): string[] {
  return [
    step.is_teardown ? words.marks.teardown : step.rule !== "all_success" ? (words.ruleWords[step.rule] ?? step.rule) : "",
    step.when ? `${words.marks.when} ${step.when}` : "",
    step.awaits_signal ? words.marks.signal : "",
    step.is_map ? words.marks.map : step.is_workflow ? words.marks.workflow : "",
  ].filter(Boolean);
}

/** From what needs a look to what does not. */
const ORDER: RunState[] = ["failed", "running", "held", "ready", "scheduled", "cancelled", "waiting", "skipped", "succeeded"];

export function looksOf(folded: FoldedGraph, look: WorkflowLook, at: number): NodeLook[] {
  return folded.nodes.map((node): NodeLook => {
    const [place = 0] = node.steps;
    const step = look.steps[place];
    if (node.steps.length === 1 && step) {
      const now = look.now[place];
      const state = stateOf(now);
      const { children } = now ?? {};
      const took = tookOf(now, at);
      const word = text.states[state];
      return {
        label: step.key,
        below: children ? `${words.graph.items(doneOf(children), children.total)}${took ? ` · ${took}` : ""}` : state === "failed" && now?.error ? now.error : [word, took].filter(Boolean).join(" · "),
        state,
        ring: children ? { succeeded: children.succeeded, failed: children.failed, other: children.cancelled + children.skipped, total: children.total } : null,
        marks: marksOf(step),
        isFolded: false,
      };
    }
    const states = node.steps.map((one) => stateOf(look.now[one]));
    const count = (...wanted: RunState[]) => states.filter((state) => wanted.includes(state)).length;
    return {
      label: node.label,
      below: words.graph.folded(node.steps.length),
      state: ORDER.find((state) => states.includes(state)) ?? "waiting",
      ring: { succeeded: count("succeeded"), failed: count("failed"), other: count("cancelled", "skipped"), total: states.length },
      marks: step ? marksOf(step) : [],
      isFolded: true,
    };
  });
}
