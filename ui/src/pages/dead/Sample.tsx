import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { asApiError } from "~/api/problems";
import { CopyButton } from "~/components/Copy";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Icon } from "~/components/Icon";
import { JsonView } from "~/components/JsonView";
import { Panel } from "~/components/Panel";
import { Skeleton } from "~/components/Skeleton";
import { words } from "~/texts/dead";
import { runQueryOf } from "../runs/queries";
import { errorText } from "../runs/RunCells";
import { stackOf } from "./queries";
import styles from "./dead.module.css";

const STACK_MAX = 20_000;

/** The latest failure of a group: its stack and its payload. */
export function Sample({ id }: { id: string }) {
  const run = useQuery({ ...runQueryOf(id), staleTime: 60_000 });
  if (run.error) {
    const isGone = asApiError(run.error).kind === "not_found";
    return (
      <Panel title={words.sample} className={styles.part}>
        {isGone ? <p className="quiet">{words.sampleGone}</p> : <ErrorNotice error={run.error} onRetry={() => void run.refetch()} />}
      </Panel>
    );
  }
  if (!run.data) return <Skeleton lines={6} />;
  const stack = stackOf(run.data);
  return (
    <Panel
      className={styles.part}
      title={words.sample}
      hint={words.sampleHint(run.data.attempt)}
      actions={
        <Link to={`/runs/${id}` as never} className={styles.open}>
          {words.openRun}
          <Icon name="chevron" size={14} />
        </Link>
      }
    >
      <div className={styles.sample}>
        <section className={styles.stack}>
          <header>
            <h3>{stack ? words.stack : words.error}</h3>
            {stack && <CopyButton value={stack} label={words.copyStack} />}
          </header>
          {stack ? (
            <pre tabIndex={0}>{stack.length > STACK_MAX ? `… ${stack.slice(-STACK_MAX)}` : stack}</pre>
          ) : (
            <pre tabIndex={0}>{errorText(run.data.error).slice(0, STACK_MAX)}</pre>
          )}
        </section>
        <section className={styles.payload}>
          <h3>{words.payload}</h3>
          <JsonView value={run.data.payload} label={words.payload} />
        </section>
      </div>
    </Panel>
  );
}
