import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { queryClient } from "~/api/queries";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { classes } from "~/components/classes";
import { NothingFits } from "~/components/EmptyState";
import { FilterBar, type Suggestion } from "~/components/FilterBar";
import { Histogram } from "~/components/Histogram";
import { SavedViews } from "~/app/SavedViews";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { FreshButton, type Selection, SelectionBar, Table } from "~/components/Table";
import { useKeysetList } from "~/live/useKeysetList";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { filterText, parseFilter, valuesOf, withTerm } from "~/model/filter";
import { number } from "~/model/numbers";
import { prefer, usePreferences } from "~/model/preferences";
import { runFilterKeys, runQuery } from "~/model/runFilter";
import { STATES } from "~/model/states";
import { text } from "~/texts/en";
import { BulkDialog, type Bulk } from "./BulkDialog";
import { exportRuns } from "./exporting";
import { FacetBar } from "./FacetBar";
import { nameOfRun, facetsQuery, histogramQuery, type Run, runPage } from "./queries";
import { RUN_COLUMNS } from "./RunList";
import { RunPeek } from "./RunPeek";
import { Welcome } from "./Welcome";
import styles from "./RunsPage.module.css";

export const KEYS = runFilterKeys({ ...text.filter, keys: text.runs.keys });
const RANGES = ["15m", "1h", "6h", "24h", "7d", "30d"] as const;
const TABLE = "runs";

export function RunsPage() {
  const { q = "", peek } = useSearch({ strict: false }) as { q?: string; peek?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>, replace = false) =>
    void navigate({ to: "." as never, replace, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const terms = useMemo(() => parseFilter(q, KEYS, text.filter), [q]);
  const query = useMemo(() => runQuery(terms), [terms]);
  const queryText = JSON.stringify(query);
  const isPast = valuesOf(terms, "until").length > 0;
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [bulk, setBulk] = useState<Bulk | null>(null);
  const mayOperate = useMay("operate");

  const list = useKeysetList<Run>({
    listKey: queryText,
    fetchPage: (after, signal) => runPage(query, after, signal),
    idOf: (run) => run.id,
    isLive: !isPast,
  });
  const facets = useQuery(facetsQuery(query));
  const histogram = useQuery(histogramQuery({ ...query, ...(query.since ? {} : { since: "24h" }) }, 60));
  useLiveRefresh(
    () => {
      void facets.refetch();
      void histogram.refetch();
    },
    { every: 5_000, isOn: !isPast && !facets.error },
  );

  const setFilter = (next: string) => {
    setSelected(new Set());
    set({ q: next || undefined });
  };
  const setTerm = (name: string, values: string[]) => setFilter(withTerm(q, name, values, KEYS));
  const narrow = (from: number, to: number) =>
    setFilter(withTerm(withTerm(q, "since", [new Date(from).toISOString()], KEYS), "until", [new Date(to).toISOString()], KEYS));
  const widen = () => setFilter(withTerm(withTerm(q, "since", [], KEYS), "until", [], KEYS));

  const suggest = (name: string, typed: string): Suggestion[] => {
    const lower = typed.toLowerCase();
    if (name === "state") return STATES.filter((state) => state.startsWith(lower)).map((value) => ({ value, hint: text.stateMeanings[value] }));
    if (name === "since" || name === "until") return RANGES.filter((range) => range.startsWith(lower)).map((value) => ({ value, hint: text.runs.ranges[value] }));
    const known = facets.data?.[name as "queue"] ?? [];
    return known.filter((one) => one.name.toLowerCase().includes(lower)).map((one) => ({ value: one.name, hint: number(one.count) }));
  };

  const selection: Selection | undefined = mayOperate ? { ids: selected, change: setSelected } : undefined;
  const isUnfiltered = q.trim() === "";
  if (isUnfiltered && !list.isLoading && !list.error && list.items.length === 0) return <Welcome />;
  return (
    <>
      <PageHeader
        title={text.runs.title}
        actions={
          <>
            <SavedViews page="runs" path="/runs" />
            <ViewMenu onExport={(form) => void exportRuns(query, form)} />
          </>
        }
      />
      <div className={styles.filters}>
        <FilterBar value={q} onChange={setFilter} keys={KEYS} suggest={suggest} label={text.filter.label} placeholder={text.runs.placeholder}>
          <RangeMenu value={valuesOf(terms, "since")[0]} isPast={isPast} onChoose={(since) => setFilter(withTerm(withTerm(q, "until", [], KEYS), "since", since ? [since] : [], KEYS))} />
        </FilterBar>
        <FacetBar facets={facets.data} terms={terms} onSet={setTerm} />
      </div>
      {histogram.data && histogram.data.length > 0 && (
        <div className={styles.histogram}>
          <Histogram buckets={histogram.data} label={text.runs.histogram} onNarrow={narrow} onWiden={widen} />
        </div>
      )}
      <FreshButton count={list.freshCount} onShow={list.showFresh} />
      <div className={classes(peek && styles.besidePeek)}>
        <Table<Run>
          label={text.runs.title}
          name={TABLE}
          rows={list.items}
          columns={RUN_COLUMNS}
          idOf={(run) => run.id}
          nameOf={nameOfRun}
          linkOf={(run) => ({ to: `/runs/${run.id}` })}
          selection={selection}
          peeked={peek}
          onPeek={(run) => set({ peek: run?.id }, true)}
          isLoading={list.isLoading}
          hasMore={list.hasMore}
          isLoadingMore={list.isLoadingMore}
          onMore={list.loadMore}
          onVisible={list.setVisible}
          error={list.error}
          onRetry={list.reload}
          empty={<NothingFits what={text.runs.what} onClear={() => setFilter("")} />}
        />
      </div>
      {selection && (
        <SelectionBar selection={selection}>
          {selected.size === 2 && (
            <Button size="small" icon="columns" onClick={() => void navigate({ to: "/runs/compare" as never, search: { left: [...selected][0], right: [...selected][1] } as never })}>
              {text.runs.compare}
            </Button>
          )}
          <Button size="small" icon="stop" onClick={() => setBulk({ action: "cancel", ids: [...selected] })}>
            {text.run.cancel}
          </Button>
          <Button size="small" icon="rerun" onClick={() => setBulk({ action: "rerun", ids: [...selected] })}>
            {text.run.rerun}
          </Button>
          {!isUnfiltered && list.items.length > 0 && list.items.every((run) => selected.has(run.id)) && (
            <Menu
              label={text.list.everything}
              text={text.list.everything}
              kind="quiet"
              size="small"
              entries={[
                { label: text.bulk.cancelAll, icon: "stop", isDangerous: true, onSelect: () => setBulk({ action: "cancel", filter: query, words: filterText(terms) }) },
                { label: text.bulk.rerunAll, icon: "rerun", onSelect: () => setBulk({ action: "rerun", filter: query, words: filterText(terms) }) },
              ]}
            />
          )}
        </SelectionBar>
      )}
      {bulk && (
        <BulkDialog
          bulk={bulk}
          onClose={() => setBulk(null)}
          onDone={() => {
            setBulk(null);
            setSelected(new Set());
            list.reload();
            void queryClient.invalidateQueries();
          }}
        />
      )}
      {peek && <RunPeek id={peek} onClose={() => set({ peek: undefined }, true)} />}
    </>
  );
}

function RangeMenu({ value, isPast, onChoose }: { value: string | undefined; isPast: boolean; onChoose: (since: string | null) => void }) {
  const isKnown = value !== undefined && (RANGES as readonly string[]).includes(value);
  const label = value === undefined ? text.runs.ranges["7d"] : isKnown && !isPast ? text.runs.ranges[value as "1h"] : text.runs.ranges.custom;
  return (
    <Menu
      label={`${text.runs.ranges.label}: ${label}`}
      text={label}
      size="small"
      entries={RANGES.map((range) => ({ label: text.runs.ranges[range], isChosen: !isPast && (value ?? "7d") === range, onSelect: () => onChoose(range === "7d" ? null : range) }))}
    />
  );
}

function ViewMenu({ onExport }: { onExport: (form: "csv" | "json") => void }) {
  const { density, hidden } = usePreferences();
  const off = hidden[TABLE] ?? RUN_COLUMNS.filter((column) => column.isExtra).map((column) => column.id);
  const toggle = (id: string) => prefer({ hidden: { ...hidden, [TABLE]: off.includes(id) ? off.filter((one) => one !== id) : [...off, id] } });
  return (
    <Menu
      label={text.list.view}
      icon="columns"
      text={text.list.view}
      kind="plain"
      entries={[
        { heading: text.list.density },
        { label: text.list.comfortable, isChosen: density === "comfortable", onSelect: () => prefer({ density: "comfortable" }) },
        { label: text.list.compact, isChosen: density === "compact", onSelect: () => prefer({ density: "compact" }) },
        { heading: text.list.columns },
        ...RUN_COLUMNS.filter((column) => !column.isFixed).map((column) => ({ label: String(column.label), isChosen: !off.includes(column.id), onSelect: () => toggle(column.id) })),
        "line" as const,
        { label: text.list.exportCsv, icon: "download" as const, onSelect: () => onExport("csv") },
        { label: text.list.exportJson, icon: "download" as const, onSelect: () => onExport("json") },
      ]}
    />
  );
}
