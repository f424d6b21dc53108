import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useKeys } from "~/app/keys";
import { Facts } from "~/components/Facts";
import { Peek } from "~/components/Peek";
import { QueueLink, TaskLink } from "~/components/Places";
import { Explained } from "~/components/Tip";
import { StateBadge } from "~/components/StateBadge";
import { Duration, Time } from "~/components/Time";
import { ENDED } from "~/model/states";
import { arrowsOf, followingOf } from "~/model/workflowGraph";
import { number } from "~/model/numbers";
import { sentence, text } from "~/texts/en";
import { doneOf, stateOf } from "./looks";
import type { WorkflowLook } from "./queries";
import styles from "./StepPanel.module.css";

const { step: words, rules } = text.workflows;
const SHOWN = 8;

/** A first look at one step: what it does, what it waits for, and where to go from here. */
export function StepPanel({ look, place, onSelect, onClose }: { look: WorkflowLook; place: number; onSelect: (place: number) => void; onClose: () => void }) {
  const after = useMemo(() => arrowsOf(look.steps), [look.steps]);
  const following = useMemo(() => followingOf(after), [after]);
  useKeys([{ key: "Escape", run: onClose }]);
  const step = look.steps[place];
  const now = look.now[place];
  if (!step) return null;
  const state = stateOf(now);
  const { children } = now ?? {};
  return (
    <Peek
      onClose={onClose}
      title={
        <div className={styles.title}>
          <h2>{step.key}</h2>
          <StateBadge state={state} />
        </div>
      }
      footer={
        now && (
          <>
            {step.is_workflow && children && (
              <Link to={`/workflows/${now.id}/graph` as never} className={styles.open}>
                {words.openWorkflow}
              </Link>
            )}
            {step.is_map && children && (
              <Link to={"/runs" as never} search={{ q: `parent:${now.id}` } as never} className={styles.open}>
                {words.openItems}
              </Link>
            )}
            <Link to={`/runs/${now.id}` as never} className={styles.open}>
              {words.openRun}
            </Link>
          </>
        )
      }
    >
      <div className={styles.parts}>
        {now?.error && <p className={state === "failed" ? styles.error : undefined}>{sentence(now.error)}</p>}
        {!now && <p className="quiet">{words.notYet}</p>}
        {!ENDED.has(state) && now && <p className="quiet">{text.stateMeanings[state]}</p>}
        <Facts
          items={[
            [text.run.facts.task, <TaskLink key="k" name={step.task} />],
            step.queue && [text.run.facts.queue, <QueueLink key="q" name={step.queue} />],
            now?.started_at && [text.run.facts.started, <Time key="s" at={now.started_at} form="both" isFocusable />],
            now?.started_at && [text.run.facts.took, <Duration key="t" since={now.started_at} until={now.finished_at ?? null} />],
            now && now.attempt > 1 && [words.attempts, number(now.attempt)],
            children && [words.items, text.workflows.graph.items(doneOf(children), children.total)],
            step.rule !== "all_success" && [words.rule, rules[step.rule] ? <Explained key="r" text={rules[step.rule]}>{step.rule}</Explained> : step.rule],
            step.when && [words.when, <code key="w">{step.when}</code>],
            [words.after, <Steps key="a" look={look} places={after[place] ?? []} onSelect={onSelect} />],
            (following[place]?.length ?? 0) > 0 && [words.then, <Steps key="f" look={look} places={following[place] ?? []} onSelect={onSelect} />],
          ]}
        />
      </div>
    </Peek>
  );
}

function Steps({ look, places, onSelect }: { look: WorkflowLook; places: readonly number[]; onSelect: (place: number) => void }) {
  if (places.length === 0) return <span className="quiet">{words.nothing}</span>;
  return (
    <ul className={styles.steps}>
      {places.slice(0, SHOWN).map((place) => (
        <li key={place}>
          <button type="button" onClick={() => onSelect(place)}>
            <StateBadge state={stateOf(look.now[place])} isQuiet explain={false} word="" />
            <span>{look.steps[place]?.key}</span>
          </button>
        </li>
      ))}
      {places.length > SHOWN && <li className="quiet">{words.more(places.length - SHOWN)}</li>}
    </ul>
  );
}
