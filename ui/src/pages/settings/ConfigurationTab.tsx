import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { Setting } from "~/api/schema";
import { NothingFits, Unavailable } from "~/components/EmptyState";
import { SearchField } from "~/components/SearchField";
import { Segments } from "~/components/Segments";
import { type Column, Table } from "~/components/Table";
import styles from "./settings.module.css";
import { words } from "./texts";

const { configuration } = words;

const told = (value: unknown) => (value === "" || value === null ? configuration.empty : String(value));
const isChanged = (setting: Setting) => setting.source !== "default";

/** Words between backticks are names. */
const withCode = (description: string) => description.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part));

const COLUMNS: Column<Setting>[] = [
  {
    id: "name",
    label: configuration.name,
    width: "minmax(14rem, 1.6fr)",
    card: "title",
    isFixed: true,
    cell: (setting) => (
      <span className={styles.setting}>
        <span className={styles.mono}>{setting.name}</span>
        <small>{withCode(setting.description)}</small>
      </span>
    ),
  },
  {
    id: "value",
    label: configuration.value,
    width: "minmax(9rem, 1fr)",
    cell: (setting) => (
      <span className={styles.value}>
        <span className={setting.value === "" ? "quiet" : styles.mono}>{told(setting.value)}</span>
        {isChanged(setting) && told(setting.value) !== told(setting.default) && <small>{configuration.byDefault(told(setting.default))}</small>}
      </span>
    ),
  },
  { id: "source", label: configuration.source, width: "8rem", card: "side", cell: (setting) => <span className={isChanged(setting) ? undefined : "quiet"}>{configuration.sources[setting.source]}</span> },
];

export function ConfigurationTab() {
  const { q = "", changed } = useSearch({ strict: false }) as { q?: string; changed?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) => void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const query = useQuery({ queryKey: key("settings"), queryFn: async () => (await data(client.GET("/v1/settings"))).items, staleTime: 60_000 });
  if (query.error) return <Unavailable level={2} error={query.error} onRetry={() => void query.refetch()} />;
  const lower = q.toLowerCase();
  const rows = (query.data ?? []).filter((setting) => (!changed || isChanged(setting)) && `${setting.name} ${setting.description}`.toLowerCase().includes(lower));
  return (
    <>
      <p className={styles.intro}>{configuration.hint}</p>
      <div className={styles.bar}>
        <div className={styles.wide}>
          <SearchField value={q} onChange={(value) => set({ q: value || undefined })} label={configuration.search} placeholder={configuration.search} />
        </div>
        <Segments label={configuration.source} value={changed ? "1" : ""} onChange={(value) => set({ changed: value || undefined })} options={[{ value: "", label: configuration.all }, { value: "1", label: configuration.changed }]} />
      </div>
      <Table label={words.tabs.configuration} name="settings" rows={rows} columns={COLUMNS} idOf={(setting) => setting.name} isLoading={query.isPending} empty={<NothingFits what={configuration.what} onClear={() => set({ q: undefined, changed: undefined })} />} />
    </>
  );
}
