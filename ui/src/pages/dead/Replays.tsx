import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { queryClient } from "~/api/queries";
import type { Replay } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { Icon, type IconName } from "~/components/Icon";
import { Panel } from "~/components/Panel";
import { ProgressBar } from "~/components/ProgressBar";
import { StateBadge } from "~/components/StateBadge";
import badge from "~/components/StateBadge.module.css";
import { Time } from "~/components/Time";
import { toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { serverNow } from "~/model/clock";
import { replayParts } from "~/model/replay";
import type { Tone } from "~/model/states";
import { millis } from "~/model/times";
import { words } from "~/texts/dead";
import { runQueryOf } from "../runs/queries";
import { replayQuery, replaysQuery, sendStop } from "./queries";
import styles from "./dead.module.css";

const LOOKS: Record<Replay["state"], [Tone, IconName]> = { waiting: ["held", "hourglass"], releasing: ["running", "play"], done: ["succeeded", "check"], stopped: ["failed", "stop"] };
const RECENT_MS = 86_400_000;

/** The replays of a group with a canary: those under way, and those of the last day. */
export function Replays({ group }: { group: string }) {
  const found = useQuery(replaysQuery(group));
  useLiveRefresh(() => void found.refetch());
  const shown = (found.data ?? []).filter((replay) => replay.finished_at === null || serverNow() - millis(replay.finished_at) < RECENT_MS).slice(0, 3);
  if (shown.length === 0) return null;
  return (
    <Panel title={words.replays} className={styles.replays} isFlush>
      <ul className={styles.replayList} aria-label={words.replays}>
        {shown.map((replay) => (
          <ReplayRow key={replay.id} listed={replay} />
        ))}
      </ul>
    </Panel>
  );
}

function ReplayRow({ listed }: { listed: Replay }) {
  const details = useQuery(replayQuery(listed.id));
  const canary = useQuery(runQueryOf(listed.canary_id));
  useLiveRefresh(() => {
    void details.refetch();
    if (listed.state === "waiting") void canary.refetch();
  });
  const mayOperate = useMay("operate");
  const replay = details.data ?? listed;
  const parts = replayParts(replay);
  const [tone, icon] = LOOKS[replay.state];
  const stop = useMutation({
    mutationFn: () => sendStop(replay.id),
    onSuccess: () => {
      toast({ message: words.stopped });
      void queryClient.invalidateQueries();
    },
    onError: toastProblem,
  });
  const isOver = replay.state === "done" || replay.state === "stopped";
  const rate = replay.apart_seconds > 0 ? Math.round((1 / replay.apart_seconds) * 100) / 100 : null;
  const notes = [words.by(replay.actor), rate !== null && words.perSecond(String(rate)), replay.has_payload && words.editedPayload].filter(Boolean).join(" · ");
  return (
    <li className={styles.replay}>
      <div className={styles.replayWhat}>
        <p className={styles.replayTitle}>
          <strong>{words.replayOf(replay.total)}</strong>
          <span className={badge.badge} data-tone={tone}>
            <Icon name={icon} size={14} strokeWidth={2.2} />
            {words.states[replay.state]}
          </span>
        </p>
        <p>{replay.state === "stopped" ? words.told.stopped(replay.reason) : words.told[replay.state]}</p>
        <p className={styles.replayBy}>
          <Time at={replay.created_at} /> {notes}
        </p>
      </div>
      <div className={styles.replayProgress}>
        <p className={styles.canary}>
          <span className="quiet">{words.first}</span>
          <Link to={`/runs/${replay.canary_id}` as never} className="mono">{`…${replay.canary_id.slice(-8)}`}</Link>
          {canary.data && <StateBadge state={canary.data.state} isQuiet />}
        </p>
        <ProgressBar counts={{ running: parts.open, succeeded: parts.succeeded, failed: parts.failed, cancelled: parts.other }} total={replay.total} label={words.progress} />
        <p className={styles.counts}>
          <span>{words.started(parts.started, replay.total)}</span>
          {parts.succeeded > 0 && <span className={styles.good}>{words.succeeded(parts.succeeded)}</span>}
          {parts.failed > 0 && <span className={styles.bad}>{words.failed(parts.failed)}</span>}
          {isOver && parts.left > 0 && <span>{words.stay(parts.left)}</span>}
        </p>
      </div>
      <div className={styles.replayAction}>
        {mayOperate && !isOver && (
          <Button size="small" icon="stop" isBusy={stop.isPending} onClick={() => stop.mutate()}>
            {words.stop}
          </Button>
        )}
      </div>
    </li>
  );
}
