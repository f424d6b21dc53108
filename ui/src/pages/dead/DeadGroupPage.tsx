import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { queryClient } from "~/api/queries";
import type { DeadGroupDetails } from "~/api/schema";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button } from "~/components/Button";
import { CopyCommand, Id } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { TimeChart } from "~/components/TimeChart";
import { toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { compact } from "~/model/numbers";
import { millis } from "~/model/times";
import { words } from "~/texts/dead";
import { text } from "~/texts/en";
import { LetterList } from "./LetterList";
import { NotePanel } from "./NotePanel";
import { groupCommands, groupQuery, headline, LOOK_BACK_MS, sendDismissal, sendRestore } from "./queries";
import { ReplayDialog } from "./ReplayDialog";
import { Replays } from "./Replays";
import { Sample } from "./Sample";
import styles from "./dead.module.css";

const refresh = () => void queryClient.invalidateQueries();

export function DeadGroupPage() {
  const { group: name } = useParams({ strict: false }) as { group: string };
  const found = useQuery(groupQuery(name));
  useLiveRefresh(() => void found.refetch(), { every: 5_000 });
  const [replaying, setReplaying] = useState<{ ids?: string[] } | null>(null);
  if (found.error && !found.data) return <Unavailable error={found.error} what={words.one} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={8} height="1.5rem" />;
  const group = found.data;
  return (
    <>
      <GroupHeader group={group} onReplay={() => setReplaying({})} />
      <Replays group={group.fingerprint} />
      <div className={styles.columns}>
        <Trend group={group} at={found.dataUpdatedAt} />
        <NotePanel group={group} />
      </div>
      <Sample id={group.sample_id} />
      <LetterList group={group.fingerprint} onReplay={(ids) => setReplaying({ ids })} />
      {replaying && <ReplayDialog group={group} ids={replaying.ids} onClose={() => setReplaying(null)} />}
    </>
  );
}

function GroupHeader({ group, onReplay }: { group: DeadGroupDetails; onReplay: () => void }) {
  const mayOperate = useMay("operate");
  const navigate = useNavigate();
  const [isCommand, setCommand] = useState(false);
  const title = headline(group);
  const restore = useMutation({
    mutationFn: () => sendRestore(group.fingerprint),
    onSuccess: () => {
      toast({ message: words.restored });
      refresh();
    },
    onError: toastProblem,
  });
  const dismiss = useMutation({
    // Only what has been seen: a failure of the last second stays.
    mutationFn: () => sendDismissal(group.fingerprint, group.last_at),
    onSuccess: () => {
      toast({ message: words.dismissedDone, action: { label: text.undo, run: () => restore.mutate() } });
      refresh();
    },
    onError: toastProblem,
  });
  const blocked = group.open === 0 ? words.nothingOpen : null;
  useKeys(
    mayOperate
      ? [
          { key: "t", label: words.replay, icon: "rerun", run: () => !blocked && onReplay() },
          { label: words.dismiss, icon: "check", run: () => !blocked && dismiss.mutate() },
        ]
      : [],
  );
  const inRuns = () => void navigate({ to: "/runs" as never, search: { q: `state:failed task:${group.task} error:${JSON.stringify((group.message ?? "").split("\n")[0]?.replaceAll('"', " ").slice(0, 80) ?? "")} since:7d` } as never });
  return (
    <>
      <PageHeader
        title={title}
        above={
          <nav aria-label={words.title}>
            <Link to={"/dead" as never}>{words.title}</Link>
          </nav>
        }
        heading={<bdi className={styles.heading}>{title.length > 220 ? `${title.slice(0, 220)} …` : title}</bdi>}
        lead={words.groupLead(group.open, group.count)}
        actions={
          <>
            {mayOperate && (
              <>
                <Button kind="primary" icon="rerun" blocked={blocked} onClick={onReplay}>
                  {words.replay}
                </Button>
                {group.dismissed_until && group.open === 0 ? (
                  <Button isBusy={restore.isPending} onClick={() => restore.mutate()}>
                    {words.restore}
                  </Button>
                ) : (
                  <Button blocked={blocked} isBusy={dismiss.isPending} onClick={() => dismiss.mutate()}>
                    {words.dismiss}
                  </Button>
                )}
              </>
            )}
            <Menu
              label={text.moreActions}
              kind="plain"
              entries={[
                { label: words.inRuns, icon: "runs", onSelect: inRuns },
                ...(mayOperate ? [{ label: words.commands, icon: "copy" as const, onSelect: () => setCommand(true) }] : []),
              ]}
            />
          </>
        }
      />
      <div className={styles.facts}>
        <Facts
          columns
          items={[
            [words.facts.task, <Link key="t" to={`/tasks/${encodeURIComponent(group.task)}` as never}>{group.task}</Link>],
            [words.facts.queue, <Link key="q" to={`/queues/${encodeURIComponent(group.queue)}` as never}>{group.queue}</Link>],
            [words.facts.first, <Time key="f" at={group.first_at} isFocusable />],
            [words.facts.last, <Time key="l" at={group.last_at} isFocusable />],
            group.dismissed_until && [
              words.facts.dismissed,
              <span key="d">
                <Time at={group.dismissed_until} isFocusable /> <span className="quiet">{group.dismissed_by && words.dismissedBy(group.dismissed_by)}</span>
              </span>,
            ],
            [words.facts.group, <Id key="g" value={group.fingerprint} />],
          ]}
        />
      </div>
      <Dialog isOpen={isCommand} onClose={() => setCommand(false)} title={words.commandTitle} width="medium">
        <CopyCommand commands={groupCommands(group)} />
      </Dialog>
    </>
  );
}

function Trend({ group, at }: { group: DeadGroupDetails; at: number }) {
  const [cursor, setCursor] = useState<number | null>(null);
  const navigate = useNavigate();
  const step = LOOK_BACK_MS / group.trend.length;
  const brush = (from: number, to: number) =>
    void navigate({ to: "/runs" as never, search: { q: `state:failed task:${group.task} since:${new Date(from).toISOString()} until:${new Date(to).toISOString()}` } as never });
  return (
    <TimeChart
      title={words.chart}
      label={words.chartLabel}
      lines={[{ name: "", label: words.failures, color: "--failed-solid", values: group.trend }]}
      since={Math.min(at, millis(group.last_at) + LOOK_BACK_MS) - LOOK_BACK_MS}
      step={step}
      form="bars"
      tell={compact}
      isWhole
      cursor={cursor}
      onCursor={setCursor}
      onBrush={brush}
      none=""
      level={2}
    />
  );
}
