import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ErrorNotice } from "~/components/ErrorNotice";
import { FireList } from "~/components/FireList";
import { Skeleton } from "~/components/Skeleton";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { text } from "~/texts/en";
import { type Job, nextQuery, zoneOf } from "./queries";
import styles from "./TicksTab.module.css";

const { jobs: words } = text;
const NEXT = 50;
const FIRST = 10;

/** The next 50 ticks, ten of them at first. */
export function NextFires({ job }: { job: Job }) {
  const [isWhole, setWhole] = useState(false);
  const next = useQuery({ ...nextQuery(job.id, NEXT), enabled: job.status === "active" });
  useLiveRefresh(() => void next.refetch(), { every: 10_000, isOn: job.status === "active" });
  if (job.status !== "active") return null;
  const items = next.data?.items ?? [];
  return (
    <section className={styles.next}>
      <h2>{words.next}</h2>
      {next.data ? (
        <div className={styles.card}>
          {items.length === 0 ? <p>{words.never}</p> : <FireList ticks={isWhole ? items : items.slice(0, FIRST)} zone={zoneOf(job)} />}
          {items.length > FIRST && (
            <button type="button" className={styles.more} aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
              {isWhole ? words.fewerNext : text.json.more(items.length - FIRST)}
            </button>
          )}
        </div>
      ) : next.error ? (
        <ErrorNotice error={next.error} />
      ) : (
        <Skeleton lines={6} />
      )}
    </section>
  );
}
