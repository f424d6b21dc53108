import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { client, data } from "~/api/client";
import type { AuditRecord } from "~/api/schema";
import { EmptyState, NothingFits } from "~/components/EmptyState";
import { Menu } from "~/components/Menu";
import { SearchField } from "~/components/SearchField";
import { Segments } from "~/components/Segments";
import { type Column, FreshButton, Table } from "~/components/Table";
import { Time } from "~/components/Time";
import { toast, toastProblem } from "~/components/Toast";
import { useKeysetList } from "~/live/useKeysetList";
import { csvOf } from "~/model/csv";
import { saveFile } from "~/model/saveFile";
import { text } from "~/texts/en";
import { State } from "./State";
import styles from "./settings.module.css";
import { words } from "./texts";

const { audit } = words;
const EXPORT_MAX = 20_000;
const FIELDS = ["at", "actor", "actor_namespace", "role", "namespace", "action", "target", "status", "code", "method", "path", "address", "request_id", "token_id"] as const;

interface Search {
  actor?: string;
  action?: string;
  target?: string;
  denied?: string;
  since?: string;
}

export function AuditTab() {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const set = (change: Search) => void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const since = search.since ?? "7d";
  const query = { since, ...(search.actor ? { actor: search.actor } : {}), ...(search.action ? { action: search.action } : {}), ...(search.target ? { target: search.target } : {}), ...(search.denied ? { denied: true } : {}) };
  const fetchPage = (after: string | undefined, signal?: AbortSignal) => data(client.GET("/v1/audit", { params: { query: { ...query, limit: 200, ...(after ? { after } : {}) } }, signal }));
  const list = useKeysetList<AuditRecord>({ listKey: JSON.stringify(query), fetchPage, idOf: (entry) => entry.id, every: 2_000 });
  const isFiltered = Boolean(search.actor || search.action || search.target || search.denied);
  const save = async (form: "csv" | "json") => {
    const rows: AuditRecord[] = [];
    let after: string | undefined;
    try {
      do {
        const page = await fetchPage(after);
        rows.push(...page.items);
        after = page.next ?? undefined;
      } while (after && rows.length < EXPORT_MAX);
    } catch (error) {
      toastProblem(error);
      return;
    }
    if (form === "json") saveFile(JSON.stringify(rows, null, 1), "audit.json", "application/json");
    else saveFile(csvOf(FIELDS, rows.map((entry) => FIELDS.map((name) => entry[name]))), "audit.csv", "text/csv");
    toast({ message: text.list.exported(rows.length, after !== undefined) });
  };
  return (
    <>
      <div className={styles.bar}>
        <div className={styles.wide}>
          <SearchField value={search.actor ?? ""} onChange={(value) => set({ actor: value || undefined })} label={audit.search} placeholder={audit.search} />
        </div>
        <div className={styles.wide}>
          <SearchField value={search.action ?? ""} onChange={(value) => set({ action: value || undefined })} label={audit.action} placeholder={audit.action} />
        </div>
        <Segments label={audit.result} value={search.denied ? "1" : ""} onChange={(value) => set({ denied: value || undefined })} options={[{ value: "", label: audit.all }, { value: "1", label: audit.denied }]} />
        <Menu label={audit.periods[since] ?? since} text={audit.periods[since] ?? since} entries={Object.entries(audit.periods).map(([value, label]) => ({ label, isChosen: value === since, onSelect: () => set({ since: value === "7d" ? undefined : value }) }))} />
        <Menu label={audit.export} text={audit.export} entries={(["csv", "json"] as const).map((form) => ({ label: form.toUpperCase(), icon: "download" as const, onSelect: () => void save(form) }))} />
      </div>
      <FreshButton count={list.freshCount} onShow={list.showFresh} />
      <Table
        label={words.tabs.audit}
        name="audit"
        rows={list.items}
        columns={COLUMNS}
        idOf={(entry) => entry.id}
        isLoading={list.isLoading}
        hasMore={list.hasMore}
        isLoadingMore={list.isLoadingMore}
        onMore={list.loadMore}
        onVisible={list.setVisible}
        error={list.error}
        onRetry={list.reload}
        empty={isFiltered ? <NothingFits what={audit.what_plural} onClear={() => set({ actor: undefined, action: undefined, target: undefined, denied: undefined })} /> : <EmptyState icon="lock" title={audit.empty} />}
      />
    </>
  );
}

function Result({ entry }: { entry: AuditRecord }) {
  if (entry.status < 400) return <State tone="good">{audit.ok}</State>;
  return <State tone={entry.status < 500 ? "notice" : "problem"}>{`${entry.status < 500 ? audit.refused : audit.failed} ${entry.status}`}</State>;
}

const PLACES: Record<string, string> = { runs: "/runs", jobs: "/jobs", workflows: "/workflows", queues: "/queues", workers: "/workers", calendars: "/calendars" };

function Target({ entry }: { entry: AuditRecord }) {
  if (!entry.target) return <span className="quiet">{text.none}</span>;
  const place = PLACES[/^\/v1\/([a-z]+)\//.exec(entry.path)?.[1] ?? ""];
  // Trigger and rerun create a run; its id is what they were about.
  const isRun = entry.action === "trigger_job" || entry.action === "rerun_run";
  const told = <span className={styles.mono}>{entry.target}</span>;
  return place ? <Link to={`${isRun ? "/runs" : place}/${encodeURIComponent(entry.target)}` as never}>{told}</Link> : told;
}

const COLUMNS: Column<AuditRecord>[] = [
  { id: "when", label: audit.when, width: "8rem", cell: (entry) => <Time at={entry.at} /> },
  {
    id: "who",
    label: audit.who,
    width: "minmax(8rem, 0.8fr)",
    cell: (entry) => (
      <>
        {entry.actor} {entry.role && <span className="quiet">{entry.role}</span>}
      </>
    ),
  },
  { id: "what", label: audit.what, width: "minmax(9rem, 0.8fr)", card: "title", isFixed: true, cell: (entry) => entry.action.replaceAll("_", " ") },
  { id: "on", label: audit.on, width: "minmax(9rem, 1.2fr)", cell: (entry) => <Target entry={entry} /> },
  { id: "result", label: audit.result, width: "8.5rem", card: "side", cell: (entry) => <Result entry={entry} /> },
  { id: "from", label: audit.from, width: "8rem", cell: (entry) => <span className="quiet">{entry.address ?? text.none}</span>, from: 1000, card: "none" },
];
