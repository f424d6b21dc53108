import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { Facts } from "~/components/Facts";
import { JsonView } from "~/components/JsonView";
import { QueueLink, TaskLink } from "~/components/Places";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import { type Job, scheduleOf, zoneOf } from "./queries";
import styles from "./ScheduleTab.module.css";

const EditSchedule = lazy(() => import("../schedule/EditSchedule").then((module) => ({ default: module.EditSchedule })));

const { schedule: words } = text.jobs;

/** How the job is set: its schedule, what it runs, and with which options. */
export function ScheduleTab({ job, etag }: { job: Job; etag: string | null }) {
  const { edit } = useSearch({ strict: false }) as { edit?: string };
  const navigate = useNavigate();
  const mayOperate = useMay("operate");
  const isEditable = mayOperate && scheduleOf(job).times === undefined && scheduleOf(job).after === undefined;
  const show = (isOpen: boolean) => void navigate({ to: "." as never, resetScroll: false, search: ((before: object) => ({ ...before, edit: isOpen ? "1" : undefined })) as never });
  if (edit && isEditable)
    return (
      <Suspense fallback={<Skeleton lines={8} />}>
        <EditSchedule job={job} etag={etag} onDone={() => show(false)} />
      </Suspense>
    );
  return (
    <>
      {isEditable && (
        <div className={styles.edit}>
          <Button icon="edit" onClick={() => show(true)}>
            {text.scheduling.edit}
          </Button>
        </div>
      )}
      <Parts job={job} />
    </>
  );
}

function Parts({ job }: { job: Job }) {
  const schedule = scheduleOf(job);
  const choice = (name: "overlap" | "catchup" | "dst_gap" | "dst_fold" | "on_excluded", value: string) => <Explained text={words.choices[name]?.[value] ?? ""}>{text.scheduling.options[name]?.[value] ?? value.replaceAll("_", " ")}</Explained>;
  const crons = schedule.cron === undefined ? [] : [schedule.cron].flat();
  return (
    <div className={styles.parts}>
      <section>
        <h2>{words.title}</h2>
        <div className={styles.card}>
          <Facts
            items={[
              crons.length > 0 && [words.cron, crons.map((one) => <code key={one} className={styles.code}>{one}</code>)],
              schedule.every && [words.every, <code key="e" className={styles.code}>{schedule.every}</code>],
              schedule.times && [words.times, schedule.times.slice(0, 20).map((at) => <div key={at}><Time at={at} form="absolute" jobZone={zoneOf(job)} isFocusable /></div>)],
              schedule.after && [words.after, schedule.after.map((name) => <div key={name}><Link to={`/jobs/${encodeURIComponent(name)}` as never}>{name}</Link></div>)],
              zoneOf(job) && [words.zone, zoneOf(job)],
              schedule.start_at && [words.start, <Time key="s" at={schedule.start_at} form="absolute" jobZone={zoneOf(job)} isFocusable />],
              schedule.end_at && [words.end, <Time key="n" at={schedule.end_at} form="absolute" jobZone={zoneOf(job)} isFocusable />],
              job.runs_left !== null && [words.left, job.runs_left],
              schedule.calendar && [words.calendar, <Link key="c" to={`/calendars/${encodeURIComponent(schedule.calendar)}` as never}>{schedule.calendar}</Link>],
              schedule.calendar && [words.excluded, choice("on_excluded", schedule.on_excluded ?? "skip")],
              [words.overlap, choice("overlap", schedule.overlap ?? "skip")],
              [words.catchup, choice("catchup", schedule.catchup ?? "latest")],
              zoneOf(job) && zoneOf(job) !== "UTC" && [words.gap, choice("dst_gap", schedule.dst_gap ?? "shift")],
              zoneOf(job) && zoneOf(job) !== "UTC" && [words.fold, choice("dst_fold", schedule.dst_fold ?? "first")],
              schedule.jitter_seconds && [words.jitter, words.upTo(duration(schedule.jitter_seconds))],
            ]}
          />
        </div>
      </section>
      <section>
        <h2>{words.runs}</h2>
        <div className={styles.card}>
          <Facts
            items={[
              [text.run.facts.task, <TaskLink key="k" name={job.task} />],
              [text.run.facts.queue, <QueueLink key="q" name={job.queue} />],
              job.priority !== 0 && [text.run.facts.priority, job.priority],
              [words.version, job.version],
              [words.changed, <Time key="c" at={job.updated_at} form="both" isFocusable />],
              [text.run.facts.created, <Time key="m" at={job.created_at} form="both" isFocusable />],
            ]}
          />
        </div>
      </section>
      {[
        [text.run.data.payload, job.payload],
        [text.run.data.options, job.options],
        [text.run.data.metadata, job.metadata],
      ]
        .filter(([, value]) => value !== null && typeof value === "object" && Object.keys(value).length > 0)
        .map(([label, value]) => (
          <section key={label as string}>
            <h2>{label as string}</h2>
            <JsonView value={value} label={label as string} />
          </section>
        ))}
    </div>
  );
}
