import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { NothingFits } from "~/components/EmptyState";
import { SearchField } from "~/components/SearchField";
import { StateBadge } from "~/components/StateBadge";
import { type Column, Table } from "~/components/Table";
import { Duration, Time } from "~/components/Time";
import { text } from "~/texts/en";
import { doneOf, marksOf, stateOf } from "./looks";
import type { StepNow, Structure, WorkflowLook } from "./queries";
import { StepPanel } from "./StepPanel";
import styles from "./StepsTab.module.css";

const { workflows: words } = text;

interface Row {
  place: number;
  step: Structure;
  now: StepNow | undefined;
}

export function StepsTab({ look }: { look: WorkflowLook }) {
  const { step: chosen, find = "" } = useSearch({ strict: false }) as { step?: string; find?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const rows = useMemo(() => {
    const lower = find.trim().toLowerCase();
    return look.steps.flatMap((step, place): Row[] => {
      const now = look.now[place];
      const fits = lower === "" || `${step.key} ${step.task} ${stateOf(now)} ${now?.error ?? ""}`.toLowerCase().includes(lower);
      return fits ? [{ place, step, now }] : [];
    });
  }, [look, find]);
  const columns: Column<Row>[] = [
    { id: "state", label: words.columnsOfSteps.state, width: "7.5rem", card: "side", cell: ({ now }) => <StateBadge state={stateOf(now)} /> },
    {
      id: "step",
      label: words.columnsOfSteps.step,
      width: "minmax(11rem, 1.3fr)",
      card: "title",
      isFixed: true,
      cell: ({ step, now }) => (
        <span className={styles.name}>
          {now ? (
            <Link to={`/runs/${now.id}` as never} data-link className={styles.link}>
              {step.key}
            </Link>
          ) : (
            <span className={styles.link}>{step.key}</span>
          )}
          {now?.error ? <span className={styles.error}>{now.error}</span> : <span className="quiet">{marksOf(step).join(", ")}</span>}
        </span>
      ),
    },
    { id: "task", label: words.columnsOfSteps.task, width: "minmax(7rem, 0.7fr)", cell: ({ step }) => <span className="quiet">{step.task}</span>, from: 760, card: "none" },
    {
      id: "after",
      label: words.columnsOfSteps.after,
      width: "minmax(8rem, 1fr)",
      cell: ({ step }) => <span className="quiet">{step.after.slice(0, 5).map((place) => look.steps[place]?.key).join(", ") || text.none}</span>,
      from: 980,
      card: "none",
    },
    { id: "attempt", label: words.columnsOfSteps.attempt, width: "4.5rem", align: "end", cell: ({ now }) => (now && now.attempt > 0 ? now.attempt : <span className="quiet">{text.none}</span>), from: 860, card: "none" },
    { id: "started", label: words.columnsOfSteps.started, width: "8rem", align: "end", cell: ({ now }) => <Time at={now?.started_at} form="absolute" withoutZone />, from: 640 },
    {
      id: "took",
      label: words.columnsOfSteps.took,
      width: "7rem",
      align: "end",
      cell: ({ now }) => (now?.children && !now.finished_at ? words.graph.items(doneOf(now.children), now.children.total) : now?.started_at ? <Duration since={now.started_at} until={now.finished_at ?? null} /> : <span className="quiet">{text.none}</span>),
    },
  ];
  const places = useMemo(() => new Map(look.steps.map((step, place) => [step.key, place])), [look.steps]);
  const selected = chosen === undefined ? undefined : places.get(chosen);
  return (
    <>
      <div className={styles.tools}>
        <SearchField label={words.graph.search} placeholder={words.graph.search} value={find} onChange={(value) => set({ find: value || undefined })} />
      </div>
      <Table
        label={words.tabs.steps}
        name="workflow-steps"
        rows={rows}
        columns={columns}
        idOf={(row) => row.step.key}
        nameOf={(row) => row.step.key}
        linkOf={(row) => ({ to: row.now ? `/runs/${row.now.id}` : "." })}
        onPeek={(row) => set({ step: row?.step.key })}
        peeked={chosen ?? null}
        toneOf={(row) => (row.now ? undefined : "quiet")}
        empty={<NothingFits what={words.noSteps} onClear={() => set({ find: undefined })} />}
      />
      {selected !== undefined && <StepPanel look={look} place={selected} onSelect={(place) => set({ step: look.steps[place]?.key })} onClose={() => set({ step: undefined })} />}
    </>
  );
}
