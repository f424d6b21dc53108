import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "~/components/Button";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Icon } from "~/components/Icon";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { Explained } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { joinPages, statesIn } from "~/model/gridPages";
import { type RunState, STATES } from "~/model/states";
import { text } from "~/texts/en";
import { GridCanvas } from "./GridCanvas";
import { type Grid, gridPage } from "./queries";
import styles from "./GridPage.module.css";

const { workflows: words } = text;
/** Pages can be empty where other workflows are more frequent. Beyond these, somebody must ask. */
const EMPTY_PAGES_MAX = 5;

const HOLLOW = new Set(["waiting", "scheduled", "skipped"]);

export function GridPage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const navigate = useNavigate();
  const { pages, error, isLoading, older, hasOlder, reload } = useGrid(name);
  const grid = useMemo(() => joinPages(pages), [pages]);
  const isEmpty = grid.columns.length === 0;
  return (
    <>
      <PageHeader
        title={name}
        lead={words.grid.lead}
        above={
          <nav aria-label={words.title}>
            <Link to={"/workflows" as never}>{words.title}</Link>
            <Icon name="chevron" size={12} />
            <Link to={"/workflows" as never} search={{ q: name } as never}>
              {words.allRuns}
            </Link>
          </nav>
        }
      />
      {error && isEmpty ? (
        <Unavailable level={2} error={error} onRetry={reload} />
      ) : isEmpty && isLoading ? (
        <Skeleton lines={8} height="1.25rem" />
      ) : isEmpty && !hasOlder ? (
        <EmptyState icon="workflows" title={words.grid.empty(name)}>
          <p>{words.grid.emptyHint}</p>
        </EmptyState>
      ) : (
        <>
          {!isEmpty && (
            <GridCanvas
              grid={grid}
              label={words.grid.label(name, grid.steps.length, grid.columns.length)}
              onNearEnd={hasOlder && !isLoading ? older : null}
              onOpen={(id, step) => void navigate({ to: `/workflows/${id}/graph` as never, search: (step ? { step } : {}) as never })}
            />
          )}
          <ul className={styles.legend}>
            {statesIn(grid, STATES).map((state) => (
              <li key={state}>
                <i data-hollow={HOLLOW.has(state) || undefined} style={{ "--tone": `var(--${state}-solid)` } as React.CSSProperties} />
                <Explained text={text.stateMeanings[state as RunState]}>{text.states[state as RunState]}</Explained>
              </li>
            ))}
          </ul>
          <p className={styles.foot} role="status">
            {isLoading ? words.grid.searching : hasOlder ? <Button size="small" onClick={older}>{words.grid.older}</Button> : words.grid.reached}
          </p>
        </>
      )}
    </>
  );
}

function useGrid(name: string) {
  const [pages, setPages] = useState<Grid[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [isLoading, setLoading] = useState(true);
  const state = useRef({ name, isBusy: false, pages });
  state.current.pages = pages;
  const first = useCallback(async () => {
    if (state.current.isBusy) return;
    state.current.isBusy = true;
    try {
      const page = await gridPage(name, undefined);
      if (state.current.name !== name) return;
      setPages((before) => {
        const [latest, ...rest] = before;
        if (!latest) return [page];
        // Runs that new ones have pushed out of the first page stay where they were.
        const known = new Set(page.runs.map((run) => run.id));
        const pushed = latest.runs.filter((run) => !known.has(run.id));
        return [page, ...(pushed.length > 0 && page.runs.length > 0 ? [{ ...latest, runs: pushed }] : []), ...rest];
      });
      setError(null);
    } catch (problem) {
      setError(problem);
    } finally {
      state.current.isBusy = false;
      setLoading(false);
    }
  }, [name]);
  useEffect(() => {
    state.current = { name, isBusy: false, pages: [] };
    setPages([]);
    setLoading(true);
    void first();
  }, [name, first]);
  useLiveRefresh(() => void first(), { every: 2_000 });
  const older = useCallback(async () => {
    if (state.current.isBusy) return;
    state.current.isBusy = true;
    setLoading(true);
    try {
      let after = state.current.pages.at(-1)?.next ?? undefined;
      for (let tries = 0; after && tries < EMPTY_PAGES_MAX; tries += 1) {
        const page = await gridPage(name, after);
        if (state.current.name !== name) return;
        setPages((before) => [...before, page]);
        after = page.next ?? undefined;
        if (page.runs.length > 0) break;
      }
      setError(null);
    } catch (problem) {
      setError(problem);
    } finally {
      state.current.isBusy = false;
      setLoading(false);
    }
  }, [name]);
  return { pages, error, isLoading, older: () => void older(), hasOlder: Boolean(pages.at(-1)?.next), reload: () => void first() };
}
