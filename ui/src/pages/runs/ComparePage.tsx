import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Button } from "~/components/Button";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Icon } from "~/components/Icon";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { StateBadge } from "~/components/StateBadge";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { flatten } from "~/model/flatten";
import { duration, millis } from "~/model/times";
import { fieldName, words } from "~/texts/comparing";
import { nameOfRun, runQueryOf, type WholeRun } from "./queries";
import styles from "./ComparePage.module.css";

function secondsBetween(from: string | null, to: string | null): string | null {
  return from && to ? duration(Math.max(0, (millis(to) - millis(from)) / 1000)) : null;
}

/** What a run is, as fields with one text each. */
function fieldsOf(run: WholeRun): Map<string, string> {
  const plain = {
    state: run.state,
    reason: run.reason,
    name: run.name,
    task: run.task,
    queue: run.queue,
    priority: run.priority,
    attempt: run.attempt,
    worker: run.worker_id,
    waited: secondsBetween(run.scheduled_at, run.started_at),
    took: secondsBetween(run.started_at, run.finished_at),
    tags: run.tags.length > 0 ? run.tags : null,
    payload: run.payload,
    result: run.result,
    error: run.error,
    output: run.output,
    options: run.options,
    metadata: run.metadata,
  };
  return flatten(plain);
}

/** Two runs side by side: first what differs. */
export function ComparePage() {
  const { left, right } = useSearch({ strict: false }) as { left?: string; right?: string };
  const navigate = useNavigate();
  const [one, other] = [useQuery({ ...runQueryOf(left ?? ""), enabled: Boolean(left) }), useQuery({ ...runQueryOf(right ?? ""), enabled: Boolean(right) })];
  useLiveRefresh(
    () => {
      void one.refetch();
      void other.refetch();
    },
    { every: 2_000, isOn: Boolean(left && right) },
  );
  if (!left || !right)
    return (
      <EmptyState level={1} icon="columns" title={words.title} action={<Link to={"/runs" as never}>{words.toRuns}</Link>}>
        <p>{words.choose}</p>
      </EmptyState>
    );
  const error = one.error ?? other.error;
  if (error && !(one.data && other.data)) return <Unavailable error={error} onRetry={() => void Promise.all([one.refetch(), other.refetch()])} />;
  if (!one.data || !other.data) return <Skeleton lines={8} />;
  const [first, second] = [fieldsOf(one.data), fieldsOf(other.data)];
  const paths = [...new Set([...first.keys(), ...second.keys()])];
  const differing = paths.filter((path) => first.get(path) !== second.get(path));
  const same = paths.filter((path) => first.get(path) === second.get(path));
  return (
    <>
      <PageHeader
        title={words.title}
        above={
          <nav aria-label={words.toRuns}>
            <Link to={"/runs" as never}>{words.toRuns}</Link>
            <Icon name="chevron" size={12} />
            <span>{words.title}</span>
          </nav>
        }
        lead={words.differ(differing.length)}
        actions={
          <Button icon="rerun" onClick={() => void navigate({ to: "." as never, replace: true, search: ((before: object) => ({ ...before, left: right, right: left })) as never })}>
            {words.swap}
          </Button>
        }
      />
      <div className={styles.scroll} tabIndex={0} role="region" aria-label={words.title}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{words.field}</th>
              <Head run={one.data} side={words.left} />
              <Head run={other.data} side={words.right} />
            </tr>
          </thead>
          <tbody>
            {differing.map((path) => (
              <Row key={path} path={path} left={first.get(path)} right={second.get(path)} isDifferent />
            ))}
          </tbody>
        </table>
      </div>
      {same.length > 0 && (
        <details className={styles.same}>
          <summary>{words.same(same.length)}</summary>
          <table className={styles.table}>
            <tbody>
              {same.map((path) => (
                <Row key={path} path={path} left={first.get(path)} right={second.get(path)} />
              ))}
            </tbody>
          </table>
        </details>
      )}
    </>
  );
}

function Head({ run, side }: { run: WholeRun; side: string }) {
  return (
    <th scope="col">
      <span className="visually-hidden">{side}: </span>
      <Link to={`/runs/${run.id}` as never} className={styles.run}>
        {nameOfRun(run)}
      </Link>
      <span className={styles.below}>
        <StateBadge state={run.state as never} />
        <Time at={run.created_at} form="both" isFocusable />
      </span>
    </th>
  );
}

function Row({ path, left, right, isDifferent }: { path: string; left: string | undefined; right: string | undefined; isDifferent?: boolean }) {
  return (
    <tr>
      <th scope="row">{fieldName(path)}</th>
      {[left, right].map((value, index) => (
        <td key={index} data-different={isDifferent || undefined}>
          {value === undefined ? <span className="quiet">{words.none}</span> : value}
        </td>
      ))}
    </tr>
  );
}
