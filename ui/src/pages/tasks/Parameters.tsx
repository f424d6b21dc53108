import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { TaskDetails } from "~/api/schema";
import { JsonView } from "~/components/JsonView";
import { Panel } from "~/components/Panel";
import { type Column, Table } from "~/components/Table";
import { Tag } from "~/components/Tag";
import { fieldsOf, type FormField, textOf } from "~/model/schemaForm";
import { words } from "~/texts/tasks";
import styles from "./tasks.module.css";

const { parameterColumns: heads } = words;
const WORKERS_SHOWN = 12;

const isEmpty: Record<string, (field: FormField) => boolean> = { fallback: (field) => !field.hasFallback, description: (field) => !field.description };
const COLUMNS: Column<FormField>[] = [
  {
    id: "name",
    label: heads.name,
    width: "minmax(9rem, 14rem)",
    card: "title",
    isFixed: true,
    cell: (field) => (
      <span className={styles.parameter}>
        <span className="mono">{field.name}</span>
        {field.isRequired && <span className={styles.required}>{words.required}</span>}
      </span>
    ),
  },
  { id: "type", label: heads.type, width: "minmax(8rem, 1fr)", cell: (field) => <span className="mono quiet" title={field.type}>{field.type}</span> },
  { id: "fallback", label: heads.fallback, width: "minmax(5rem, 12rem)", from: 600, card: "none", cell: (field) => (field.hasFallback ? <span className="mono">{textOf(field.fallback, "json")}</span> : null) },
  { id: "description", label: heads.description, width: "minmax(8rem, 1fr)", from: 860, card: "none", cell: (field) => <span className="quiet">{field.description}</span> },
];

/** What a payload of the task may have. */
export function Parameters({ task }: { task: TaskDetails }) {
  const fields = useMemo(() => fieldsOf(task.schema), [task.schema]);
  return (
    <Panel title={words.parameters} hint={fields && fields.length > 0 && !task.is_built_in ? words.parametersHint : undefined} isFlush>
      {fields === null ? (
        task.schema ? (
          <JsonView value={task.schema} label={words.parameters} />
        ) : (
          <p className={styles.none}>{words.anyPayload}</p>
        )
      ) : fields.length === 0 ? (
        <p className={styles.none}>{words.noParameters}</p>
      ) : (
        <Table<FormField> label={words.parameters} name="parameters" rows={fields} columns={COLUMNS.filter((column) => !fields.every(isEmpty[column.id] ?? (() => false)))} idOf={(field) => field.name} />
      )}
    </Panel>
  );
}

type Offers = TaskDetails["live_versions"][number]["workers"];

function WorkerLinks({ workers }: { workers: Offers }) {
  return (
    <p className={styles.offering}>
      {workers.slice(0, WORKERS_SHOWN).map((worker) => (
        <Link key={worker.id} to={`/workers/${worker.id}` as never}>
          {worker.name}
        </Link>
      ))}
      {workers.length > WORKERS_SHOWN && <span className="quiet">{words.more(workers.length - WORKERS_SHOWN)}</span>}
    </p>
  );
}

/** The workers that have the only version. Every worker has the built-in tasks. */
export function Offering({ task }: { task: TaskDetails }) {
  const workers = task.live_versions[0]?.workers ?? [];
  if (workers.length === 0) return null;
  return (
    <Panel className={styles.part} title={words.workersOf}>
      <WorkerLinks workers={workers} />
    </Panel>
  );
}

/** The versions that live workers have, where they differ. */
export function Versions({ task }: { task: TaskDetails }) {
  return (
    <Panel className={styles.part} title={words.versions} hint={words.versionsHint} isFlush>
      <ul className={styles.versions}>
        {task.live_versions.map((version, index) => (
          <li key={index}>
            <div className={styles.version}>
              <Tag name={version.is_latest ? words.latest : words.older} />
              <span>{version.description}</span>
            </div>
            <WorkerLinks workers={version.workers} />
            {version.schema && <JsonView value={version.schema} label={`${words.parameters}, ${version.is_latest ? words.latest : words.older}`} />}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
