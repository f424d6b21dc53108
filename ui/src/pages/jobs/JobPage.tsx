import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useRouterState } from "@tanstack/react-router";
import { useState } from "react";
import { asApiError } from "~/api/problems";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button } from "~/components/Button";
import { copy, CopyCommand } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Icon } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { Tabs } from "~/components/Tabs";
import { Tags } from "~/components/Tag";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { sentence, text } from "~/texts/en";
import { curl, shellWord } from "../runs/commands";
import { RunList } from "../runs/RunList";
import { BackfillDialog } from "./BackfillDialog";
import { JobStatus, NextFire, ScheduleWords } from "./cells";
import { PauseDialog } from "./PauseDialog";
import { type Job, jobQuery, zoneOf } from "./queries";
import { ScheduleTab } from "./ScheduleTab";
import { TicksTab } from "./TicksTab";
import { useJobActions } from "./useJobActions";
import { DeletedJob, VersionsTab } from "./VersionsTab";
import styles from "./JobPage.module.css";

const { jobs: words } = text;
const TABS = ["ticks", "runs", "schedule", "versions"] as const;

export function JobPage() {
  const { reference } = useParams({ strict: false }) as { reference: string };
  const named = useRouterState({ select: (state) => state.location.pathname.split("/").pop() ?? "" });
  const found = useQuery(jobQuery(reference));
  useLiveRefresh(() => void found.refetch(), { every: 2_000 });
  if (found.error && (!found.data || asApiError(found.error).kind === "not_found")) {
    const unavailable = <Unavailable error={found.error} what={words.one} onRetry={() => void found.refetch()} />;
    return asApiError(found.error).kind === "not_found" ? <DeletedJob reference={reference} otherwise={unavailable} /> : unavailable;
  }
  if (!found.data) return <Skeleton lines={6} height="1.5rem" />;
  const { job } = found.data;
  const at = `/jobs/${encodeURIComponent(reference)}`;
  const tab = (TABS as readonly string[]).includes(named) ? named : "ticks";
  return (
    <>
      <JobHeader job={job} />
      <div className={styles.tabs}>
        <Tabs label={words.tabs.label} items={TABS.map((name) => ({ to: `${at}/${name}`, label: words.tabs[name], isCurrent: tab === name }))} />
      </div>
      {tab === "ticks" && <TicksTab job={job} />}
      {tab === "runs" && <RunList name="job-runs" query={{ job: job.id }} empty={<EmptyState icon="runs" title={words.noRuns} />} />}
      {tab === "versions" && <VersionsTab job={job} etag={found.data.etag} />}
      {tab === "schedule" && <ScheduleTab job={job} etag={found.data.etag} />}
    </>
  );
}

function JobHeader({ job }: { job: Job }) {
  const actions = useJobActions();
  const mayOperate = useMay("operate");
  const [dialog, setDialog] = useState<"pause" | "backfill" | "command" | null>(null);
  const close = () => setDialog(null);
  const isPaused = job.status === "paused";
  const togglePause = () => (isPaused ? actions.resume.mutate(job) : setDialog("pause"));
  useKeys(
    mayOperate
      ? [
          { key: "t", label: words.trigger, icon: "play", run: () => actions.trigger.mutate(job) },
          { key: "p", label: isPaused ? words.resume : words.pause, icon: isPaused ? "play" : "pause", run: togglePause },
        ]
      : [],
  );
  return (
    <>
      <PageHeader
        title={job.name}
        above={
          <nav aria-label={words.title}>
            <Link to={"/jobs" as never}>{words.title}</Link>
            <Icon name="chevron" size={12} />
            <span>{job.task}</span>
          </nav>
        }
        heading={
          <>
            {job.name} <JobStatus job={job} />
          </>
        }
        lead={
          <div className={styles.lead}>
            <ScheduleWords job={job} />
            <Next job={job} />
            <Tags names={job.tags} most={6} isLink />
          </div>
        }
        actions={
          <>
            {mayOperate && (
              <>
                <Button icon={isPaused ? "play" : "pause"} onClick={togglePause} isBusy={actions.resume.isPending} blocked={job.status === "ended" ? words.statusMeanings.ended : null}>
                  {isPaused ? words.resume : words.pause}
                </Button>
                <Button kind="primary" icon="play" isBusy={actions.trigger.isPending} onClick={() => actions.trigger.mutate(job)}>
                  {words.trigger}
                </Button>
              </>
            )}
            <Menu
              label={text.moreActions}
              kind="plain"
              entries={[
                ...(mayOperate ? [{ label: words.backfill, icon: "rerun" as const, onSelect: () => setDialog("backfill") }] : []),
                { label: text.run.copyLink, icon: "link" as const, onSelect: () => void copy(location.href) },
                { label: text.run.copyCommand, icon: "copy" as const, onSelect: () => setDialog("command") },
                ...(mayOperate ? ["line" as const, { label: words.delete, icon: "trash" as const, isDangerous: true, onSelect: () => actions.remove(job) }] : []),
              ]}
            />
          </>
        }
      />
      {dialog === "pause" && <PauseDialog job={job} onClose={close} />}
      {dialog === "backfill" && <BackfillDialog job={job} onClose={close} />}
      <Dialog isOpen={dialog === "command"} onClose={close} title={text.run.commandTitle} width="medium">
        <div className={styles.commands}>
          {commandsOf(job).map(([title, foliot, request]) => (
            <section key={title}>
              <h3>{title}</h3>
              <CopyCommand
                commands={[
                  { label: "foliot", command: foliot },
                  { label: "curl", command: request },
                ]}
              />
            </section>
          ))}
        </div>
      </Dialog>
    </>
  );
}

function Next({ job }: { job: Job }) {
  if (job.status === "paused")
    return (
      <span className={styles.next}>
        {job.paused_reason && sentence(job.paused_reason)} {job.paused_until && <>{words.resumes} <Time at={job.paused_until} form="both" isFocusable /></>}
      </span>
    );
  if (!job.next_at) return null;
  return (
    <span className={styles.next}>
      {words.nextIn} <NextFire job={job} />
      <span className="quiet">
        <Time at={job.next_at} form="absolute" jobZone={zoneOf(job)} isFocusable />
      </span>
    </span>
  );
}

function commandsOf(job: Job): [string, string, string][] {
  const name = shellWord(job.name);
  const path = `/v1/jobs/${encodeURIComponent(job.name)}`;
  return [
    [words.trigger, `foliot trigger ${name}`, curl("POST", `${path}/trigger`)],
    job.status === "paused" ? [words.resume, `foliot resume ${name}`, curl("POST", `${path}/resume`)] : [words.pause, `foliot pause ${name}`, curl("POST", `${path}/pause`)],
    [words.tabs.versions, `foliot jobs versions ${name}`, curl("GET", `${path}/versions`)],
    [words.tabs.ticks, `foliot ticks ${name}`, curl("GET", `${path}/ticks`)],
    [words.delete, `foliot jobs delete ${name}`, curl("DELETE", path)],
  ];
}
