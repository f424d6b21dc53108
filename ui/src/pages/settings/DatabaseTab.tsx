import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { DatabaseReport } from "~/api/schema";
import { CopyCommand } from "~/components/Copy";
import { Unavailable } from "~/components/EmptyState";
import { Icon } from "~/components/Icon";
import { Figures, Panel } from "~/components/Panel";
import { Skeleton } from "~/components/Skeleton";
import { type Column, Table } from "~/components/Table";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { bytes, compact, number, percent } from "~/model/numbers";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import { State } from "./State";
import styles from "./settings.module.css";
import { words } from "./texts";

const { database } = words;
type Table_ = DatabaseReport["tables"][number];
type Replica = DatabaseReport["replicas"][number];
type Slot = DatabaseReport["slots"][number];
type Statement = NonNullable<DatabaseReport["statements"]>[number];

const total = (table: Table_) => table.table_bytes + table.index_bytes;

export function DatabaseTab() {
  const query = useQuery({ queryKey: key("database"), queryFn: () => data(client.GET("/v1/health/database")), placeholderData: keepPreviousData, staleTime: 5_000 });
  useLiveRefresh(() => void query.refetch(), { every: 10_000 });
  const shown = query.data;
  if (query.error && !shown) return <Unavailable level={2} error={query.error} onRetry={() => void query.refetch()} />;
  if (!shown) return <Skeleton />;
  return <Report shown={shown} />;
}

function Report({ shown }: { shown: DatabaseReport }) {
  const { facts } = shown;
  const growing = shown.tables.map((table) => table.bytes_per_day).filter((size) => size != null);
  const growth = growing.reduce((sum, size) => sum + size, 0);
  const told = (kind: string) => (shown.advice.some((one) => one.kind === kind) ? "problem" : undefined);
  return (
    <div className={styles.stack}>
      <Advice advice={shown.advice} />
      <Figures
        items={[
          { label: database.size, value: bytes(facts.bytes), note: database.version(facts.version) },
          { label: database.growth, value: growing.length ? database.perDay(bytes(growth)) : text.none, note: growing.length ? undefined : database.growthUnknown },
          { label: database.connections, value: number(facts.connections), note: database.ofMost(facts.connections_max), tone: told("connections") },
          { label: database.oldest, value: facts.oldest_transaction_seconds == null ? database.none : duration(facts.oldest_transaction_seconds), note: facts.oldest_transaction_of, tone: told("old_transaction") },
          { label: database.cache, value: percent(facts.cache_hit_share) },
          { label: database.locks, value: number(facts.waiting_for_locks) },
        ]}
      />
      <Panel title={database.tables} hint={database.tablesHint(shown.retention_days, shown.audit_retention_days)} isFlush>
        <Tables tables={shown.tables} />
      </Panel>
      {shown.replicas.length + shown.slots.length > 0 && (
        <Panel title={database.replication} isFlush>
          {shown.replicas.length > 0 && <Table label={database.replication} name="replicas" rows={shown.replicas} columns={REPLICAS} idOf={(one) => one.name} />}
          {shown.slots.length > 0 && <Table label={database.slot} name="slots" rows={shown.slots} columns={SLOTS} idOf={(one) => one.name} />}
        </Panel>
      )}
      {shown.statements ? (
        <Panel title={database.statements} hint={database.statementsHint} isFlush>
          <Table label={database.statements} name="statements" rows={shown.statements} columns={STATEMENTS} idOf={(one) => one.query} />
        </Panel>
      ) : (
        <Panel title={database.statements} hint={database.noStatements} isFlush>
          <CopyCommand commands={[{ label: "SQL", command: "create extension pg_stat_statements;" }]} />
        </Panel>
      )}
    </div>
  );
}

function Advice({ advice }: { advice: DatabaseReport["advice"] }) {
  if (advice.length === 0)
    return (
      <ul className={styles.advice}>
        <li className={styles.fine}>
          <Icon name="check" />
          <p>{database.fine}</p>
          <p>{database.fineHint}</p>
        </li>
      </ul>
    );
  return (
    <ul className={styles.advice} aria-label={database.advice}>
      {advice.map((one, index) => (
        <li key={index} data-severity={one.severity}>
          <Icon name="warning" />
          <p>{one.text}</p>
          <p>{one.action}</p>
        </li>
      ))}
    </ul>
  );
}

function Tables({ tables }: { tables: Table_[] }) {
  const most = Math.max(1, ...tables.map(total));
  const columns: Column<Table_>[] = [
    {
      id: "name",
      label: database.table,
      width: "minmax(9rem, 1fr)",
      card: "title",
      isFixed: true,
      cell: (table) => (
        <>
          {table.name} {table.days > 0 && <span className="quiet">{database.days(table.days)}</span>}
        </>
      ),
    },
    {
      id: "size",
      label: database.size,
      width: "minmax(8rem, 1fr)",
      card: "side",
      cell: (table) => (
        <span className={styles.sizes}>
          <span className="number">{bytes(total(table))}</span>
          <span className={styles.bars} aria-hidden="true">
            <i style={{ width: `${Math.max(1, (100 * total(table)) / most)}%` }} />
          </span>
        </span>
      ),
    },
    { id: "indexes", label: database.indexes, width: "6rem", align: "end", cell: (table) => bytes(table.index_bytes), from: 860, card: "none" },
    { id: "growth", label: database.growth, width: "7.5rem", align: "end", cell: (table) => (table.bytes_per_day == null ? <span className="quiet">{text.none}</span> : database.perDay(bytes(table.bytes_per_day))), from: 700, isLabelled: true },
    { id: "live", label: database.live, width: "5.5rem", align: "end", isLabelled: true, cell: (table) => compact(table.live_rows) },
    { id: "dead", label: <Explained text={database.deadHint}>{database.dead}</Explained>, width: "6rem", align: "end", isLabelled: true, cell: (table) => compact(table.dead_rows) },
    { id: "vacuumed", label: database.vacuumed, width: "7rem", align: "end", cell: (table) => (table.vacuumed_at ? <Time at={table.vacuumed_at} /> : <span className="quiet">{database.never}</span>), from: 760, card: "none" },
  ];
  return <Table label={database.tables} name="tables" rows={tables} columns={columns} idOf={(table) => table.name} />;
}

const REPLICAS: Column<Replica>[] = [
  { id: "name", label: database.replica, width: "minmax(9rem, 1fr)", card: "title", isFixed: true, cell: (one) => one.name },
  { id: "state", label: text.jobs.columns.status, width: "9rem", card: "side", cell: (one) => one.state },
  { id: "lag", label: database.lag, width: "7rem", align: "end", isLabelled: true, cell: (one) => (one.lag_seconds == null ? text.none : duration(one.lag_seconds)) },
  { id: "bytes", label: database.lagBytes, width: "8rem", align: "end", isLabelled: true, cell: (one) => (one.lag_bytes == null ? text.none : bytes(one.lag_bytes)) },
];

const SLOTS: Column<Slot>[] = [
  { id: "name", label: database.slot, width: "minmax(9rem, 1fr)", card: "title", isFixed: true, cell: (one) => one.name },
  { id: "state", label: text.jobs.columns.status, width: "9rem", card: "side", cell: (one) => <State tone={one.is_active ? "good" : "notice"}>{one.is_active ? database.inUse : database.unused}</State> },
  { id: "kept", label: database.kept, width: "8rem", align: "end", isLabelled: true, cell: (one) => (one.kept_bytes == null ? text.none : bytes(one.kept_bytes)) },
];

const STATEMENTS: Column<Statement>[] = [
  { id: "query", label: database.statement, width: "minmax(12rem, 1fr)", card: "title", isFixed: true, cell: (one) => <Explained text={one.query}><span className={styles.statement}>{one.query.replaceAll(/\s+/g, " ").slice(0, 160)}</span></Explained> },
  { id: "calls", label: database.calls, width: "6rem", align: "end", isLabelled: true, cell: (one) => compact(one.calls) },
  { id: "mean", label: database.mean, width: "6rem", align: "end", isLabelled: true, cell: (one) => duration(one.mean_seconds) },
  { id: "total", label: database.total, width: "6rem", align: "end", isLabelled: true, cell: (one) => duration(one.total_seconds) },
];
