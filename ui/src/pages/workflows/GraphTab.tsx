import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { Button } from "~/components/Button";
import { ErrorNotice } from "~/components/ErrorNotice";
import { SearchField } from "~/components/SearchField";
import { useTip } from "~/components/Tip";
import { useNow } from "~/model/clock";
import type { Layout } from "~/model/layeredLayout";
import { duration, millis } from "~/model/times";
import { criticalPath, foldGraph } from "~/model/workflowGraph";
import { text } from "~/texts/en";
import { GraphCanvas } from "./GraphCanvas";
import { layoutOf } from "./layout";
import { looksOf } from "./looks";
import { Outline } from "./Outline";
import type { WorkflowLook } from "./queries";
import { StepPanel } from "./StepPanel";
import styles from "./GraphTab.module.css";

const { graph: words } = text.workflows;
/** From this number of steps on, those alike are folded at first. */
const FOLD_FROM = 2_000;

function useIsWide(): boolean {
  const [isWide, setWide] = useState(() => window.matchMedia("(min-width: 768px)").matches);
  useEffect(() => {
    const query = window.matchMedia("(min-width: 768px)");
    const changed = () => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return isWide;
}

export function GraphTab({ look, name }: { look: WorkflowLook; name: string }) {
  const { step: chosen, find = "", path, fold } = useSearch({ strict: false }) as { step?: string; find?: string; path?: string; fold?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [isFollowing, setFollowing] = useState(false);
  const isFolding = fold === undefined ? look.steps.length >= FOLD_FROM : fold === "1";
  const folded = useMemo(() => foldGraph(look.steps, isFolding, opened), [look.steps, isFolding, opened]);
  const isLive = !look.workflow.finished_at;
  const ticking = useNow();
  const now = isLive ? ticking : millis(look.workflow.finished_at ?? 0);
  const nodes = useMemo(() => looksOf(folded, look, now), [folded, look, now]);
  const isWide = useIsWide();

  const places = useMemo(() => new Map(look.steps.map((step, place) => [step.key, place])), [look.steps]);
  const selectedStep = chosen === undefined ? -1 : (places.get(chosen) ?? -1);
  const selected = selectedStep < 0 ? -1 : (folded.nodeOf[selectedStep] ?? -1);
  const marked = useMemo(() => {
    const lower = find.trim().toLowerCase();
    if (lower === "") return null;
    const found = new Set<number>();
    look.steps.forEach((step, place) => {
      if (step.key.toLowerCase().includes(lower) || step.task.toLowerCase().includes(lower)) found.add(folded.nodeOf[place] ?? 0);
    });
    return found;
  }, [find, look.steps, folded]);
  const critical = useMemo(() => {
    if (path !== "1") return null;
    const found = criticalPath(
      look.steps.map((step) => (step.is_teardown ? [] : step.after)),
      look.steps.map((step, place) => (step.is_teardown ? undefined : look.now[place])),
      now,
    );
    const [begin, end] = [look.now[found[0] ?? -1]?.started_at, look.now[found.at(-1) ?? -1]];
    const took = begin ? duration(((end?.finished_at ? millis(end.finished_at) : now) - millis(begin)) / 1000) : "";
    return { nodes: new Set(found.map((place) => folded.nodeOf[place] ?? 0)), took };
  }, [path, look, folded, now]);
  const running = useMemo(() => (isFollowing ? nodes.flatMap((node, place) => (node.state === "running" || node.state === "held" ? [place] : [])) : null), [isFollowing, nodes]);

  const select = (place: number) => {
    const node = folded.nodes[place];
    if (!node) set({ step: undefined });
    else if (node.steps.length === 1) set({ step: look.steps[node.steps[0] ?? 0]?.key });
    else setOpened(new Set([...opened, node.id]));
  };
  const open = (place: number) => {
    const node = folded.nodes[place];
    if (!node) return;
    const step = node.steps[0] ?? 0;
    const run = look.now[step];
    if (node.steps.length > 1) return;
    if (run?.children && look.steps[step]?.is_workflow) void navigate({ to: `/workflows/${run.id}/graph` as never });
    else if (run?.children) void navigate({ to: "/runs" as never, search: { q: `parent:${run.id}` } as never });
    else if (run) void navigate({ to: `/runs/${run.id}` as never });
  };
  const criticalTip = useTip(words.criticalHint);
  const followTip = useTip(words.followHint);
  const isFoldable = isFolding || opened.size > 0 || look.steps.length >= FOLD_FROM;
  const stop = useMemo(() => () => setFollowing(false), []);
  return (
    <>
      <div className={styles.tools}>
        <SearchField label={words.search} placeholder={words.search} value={find} onChange={(value) => set({ find: value || undefined })} />
        {marked && <span className={styles.count}>{words.matches(marked.size)}</span>}
        {isWide && (
          <div className={styles.buttons}>
            <span {...criticalTip}>
              <Button size="small" kind="quiet" icon="bolt" aria-pressed={critical !== null} className={critical ? styles.on : undefined} onClick={() => set({ path: path === "1" ? undefined : "1" })}>
                {words.critical}
                {critical?.took && ` · ${critical.took}`}
              </Button>
            </span>
            {isLive && (
              <span {...followTip}>
                <Button size="small" kind="quiet" icon="follow" aria-pressed={isFollowing} className={isFollowing ? styles.on : undefined} onClick={() => setFollowing(!isFollowing)}>
                  {words.follow}
                </Button>
              </span>
            )}
            {isFoldable && (
              <Button
                size="small"
                kind="quiet"
                icon="columns"
                onClick={() => {
                  setOpened(new Set());
                  set({ fold: isFolding && opened.size === 0 ? "0" : "1" });
                }}
              >
                {isFolding && opened.size === 0 ? words.unfold : words.fold}
              </Button>
            )}
          </div>
        )}
      </div>
      <div className={styles.both}>
        <Outline folded={folded} nodes={nodes} marked={marked} selected={selected} onSelect={select} onOpen={open} />
        {isWide && (
          <Placed after={folded.after}>
            {(layout) => (
              <GraphCanvas
                label={words.label(name, look.steps.length)}
                layout={layout}
                nodes={nodes}
                after={folded.after}
                selected={selected}
                marked={marked}
                critical={critical?.nodes ?? null}
                followed={running}
                onSelect={select}
                onOpen={open}
                onMove={stop}
              />
            )}
          </Placed>
        )}
      </div>
      {selectedStep >= 0 && <StepPanel look={look} place={selectedStep} onSelect={(place) => set({ step: look.steps[place]?.key })} onClose={() => set({ step: undefined })} />}
    </>
  );
}

/** Asks the worker for a layout. */
function Placed({ after, children }: { after: number[][]; children: (layout: Layout) => React.ReactNode }) {
  const [placed, setPlaced] = useState<{ after: number[][]; layout: Layout }>();
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    let isCurrent = true;
    layoutOf(after).then(
      (layout) => isCurrent && setPlaced({ after, layout }),
      (problem: unknown) => isCurrent && setError(problem),
    );
    return () => {
      isCurrent = false;
    };
  }, [after]);
  if (error) return <ErrorNotice error={error} />;
  if (placed?.after !== after)
    return (
      <p className={styles.placing} role="status">
        {words.placing}
      </p>
    );
  return children(placed.layout);
}
