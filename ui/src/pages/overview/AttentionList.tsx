import { Link } from "@tanstack/react-router";
import type { AttentionEntry } from "~/api/schema";
import { Icon, type IconName } from "~/components/Icon";
import { Time } from "~/components/Time";
import { duration } from "~/model/times";
import { sentence, text } from "~/texts/en";
import styles from "./OverviewPage.module.css";

const { attention: words } = text.overview;
const ICONS: Record<string, IconName> = {
  failing_job: "warning",
  growing_group: "dead",
  open_circuit: "bolt",
  pause: "pause",
  late_worker: "workers",
  approvals: "approvals",
  ended_job: "clock",
};
const TONES: Record<string, string> = { failing_job: "bad", growing_group: "bad", open_circuit: "bad", late_worker: "bad" };
const PLACES: Record<string, string> = { failing_job: "/jobs/", ended_job: "/jobs/", open_circuit: "/tasks/", late_worker: "/workers/", growing_group: "/dead/" };

/** Where an entry is looked after. */
export function placeOf(entry: AttentionEntry): string {
  const name = encodeURIComponent(entry.reference);
  if (entry.kind === "approvals") return `/runs/${entry.run_id ?? ""}/why`;
  if (entry.kind !== "pause") return `${PLACES[entry.kind] ?? "/"}${name}`;
  return entry.of === "queue" ? `/queues/${name}` : entry.of === "task" ? `/tasks/${name}` : entry.of === "job" ? `/jobs/${name}` : "/pauses";
}

export function AttentionList({ entries, hasMore }: { entries: readonly AttentionEntry[]; hasMore: boolean }) {
  return (
    <section className={styles.section} aria-label={words.title}>
      <h2>{words.title}</h2>
      {entries.length === 0 ? (
        <div className={styles.calm}>
          <Icon name="check" size={20} />
          <p>
            <strong>{words.none}</strong>
            <span>{words.noneHint}</span>
          </p>
        </div>
      ) : (
        <ul className={styles.attention}>
          {entries.map((entry) => (
            <li key={`${entry.kind} ${entry.reference}`} data-tone={TONES[entry.kind] ?? "notice"}>
              <span className={styles.attentionIcon} title={words.kinds[entry.kind]}>
                <Icon name={ICONS[entry.kind] ?? "info"} size={18} />
                <span className="visually-hidden">{words.kinds[entry.kind]}:</span>
              </span>
              <Link to={placeOf(entry) as never} className={styles.attentionName}>
                {entry.of === "everything" ? words.everything : entry.name}
              </Link>
              <p className={styles.attentionText}>
                {told(entry)}
                {entry.kind === "pause" && entry.until && (
                  <>
                    {" "}
                    {text.jobs.resumes} <Time at={entry.until} />.
                  </>
                )}
              </p>
              <span className={styles.attentionWhen}>{entry.since ? <Time at={entry.since} /> : entry.until && entry.kind !== "pause" ? <Time at={entry.until} /> : null}</span>
            </li>
          ))}
        </ul>
      )}
      {hasMore && <p className={styles.hint}>{words.more}</p>}
    </section>
  );
}

function told(entry: AttentionEntry): string {
  const count = entry.count ?? 0;
  switch (entry.kind) {
    case "failing_job":
      return words.failingJob(count);
    case "growing_group":
      return [words.growing(count, entry.before ?? 0), entry.text ? sentence(entry.text.split("\n")[0] ?? "") : ""].join(" ");
    case "open_circuit":
      return words.circuit(count);
    case "pause":
      return [words.paused[entry.of ?? ""] ?? "", entry.text ? sentence(entry.text) : ""].join(" ");
    case "late_worker":
      return words.lateWorker(duration(Math.round(entry.seconds ?? 0)));
    case "approvals":
      return words.approvals(count);
    default:
      return words.ended;
  }
}
