import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { Peek } from "~/components/Peek";
import { QueueLink, TaskLink } from "~/components/Places";
import { Skeleton } from "~/components/Skeleton";
import { StateBadge } from "~/components/StateBadge";
import { Duration, Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { withoutAnsi } from "~/model/ansi";
import { ENDED } from "~/model/states";
import { sentence, text } from "~/texts/en";
import { Detail } from "./Detail";
import { attemptsQuery, explainQuery, nameOfRun, runQueryOf } from "./queries";
import { errorText } from "./RunCells";
import { Timeline } from "./Timeline";
import { useRunActions } from "./useRunActions";
import styles from "./RunPeek.module.css";

const { facts } = text.run;
const LINES = 14;

export function RunPeek({ id, onClose }: { id: string; onClose: () => void }) {
  const run = useQuery(runQueryOf(id));
  const attempts = useQuery(attemptsQuery(id));
  const isEnded = run.data ? ENDED.has(run.data.state) : false;
  const explain = useQuery({ ...explainQuery(id), enabled: run.data !== undefined && !isEnded && run.data.state !== "running" });
  const actions = useRunActions();
  const mayOperate = useMay("operate");
  useLiveRefresh(() => void run.refetch(), { isOn: !isEnded });
  const shown = run.data;
  return (
    <Peek
      onClose={onClose}
      title={
        shown ? (
          <div className={styles.title}>
            <h2>{nameOfRun(shown)}</h2>
            <StateBadge state={shown.state} />
          </div>
        ) : null
      }
      footer={
        shown && (
          <>
            <Link to={`/runs/${id}` as never} className={styles.open}>
              {text.run.openIt}
            </Link>
            {mayOperate &&
              (isEnded ? (
                <Button size="small" icon="rerun" onClick={() => actions.rerun.mutate({ run: shown })}>
                  {text.run.rerun}
                </Button>
              ) : (
                <Button size="small" icon="stop" onClick={() => actions.cancel(shown)}>
                  {text.run.cancel}
                </Button>
              ))}
          </>
        )
      }
    >
      {run.error ? (
        <Unavailable level={2} error={run.error} what={text.run.what} />
      ) : !shown ? (
        <Skeleton lines={5} />
      ) : (
        <div className={styles.parts}>
          {shown.state === "failed" && <p className={styles.error}>{sentence(errorText(shown.error))}</p>}
          {explain.data && (
            <p>
              <Detail words={sentence(explain.data.summary)} />
            </p>
          )}
          <Timeline run={shown} attempts={attempts.data?.items ?? []} />
          <Facts
            items={[
              [facts.task, <TaskLink key="k" name={shown.task} />],
              [facts.queue, <QueueLink key="q" name={shown.queue} />],
              shown.attempt > 0 && [facts.attempt, shown.attempt],
              shown.started_at ? [facts.started, <Time key="s" at={shown.started_at} form="both" isFocusable />] : [facts.due, <Time key="d" at={shown.scheduled_at} form="both" isFocusable />],
              shown.started_at && [facts.took, <Duration key="t" since={shown.started_at} until={shown.finished_at} />],
            ]}
          />
          {shown.output && <pre className={styles.output}>{shown.output.trimEnd().split("\n").slice(-LINES).map(withoutAnsi).join("\n")}</pre>}
        </div>
      )}
    </Peek>
  );
}
