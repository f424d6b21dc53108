import { useZoneChoice } from "~/app/useZone";
import type { UpcomingJob } from "~/api/schema";
import { box, useCanvas } from "~/components/canvas";
import { useTip } from "~/components/Tip";
import { marksOf } from "~/model/agenda";
import { timeMarks } from "~/model/chart";
import { useNow } from "~/model/clock";
import { absolute, clockTime, dayOf, zoneName } from "~/model/times";
import { words } from "~/texts/agenda";
import styles from "./AgendaPage.module.css";

interface Properties {
  job: UpcomingJob;
  since: number;
  until: number;
}

/** Every tick of a job as a mark on the line of time. */
export function FireStrip({ job, since, until }: Properties) {
  const zone = zoneName(useZoneChoice(), job.timezone);
  const now = useNow();
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const { marks, rest } = marksOf(job.fires, job.count, since, until);
      if (rest === null && marks.length * 4 <= width) {
        context.fillStyle = paint("--line-soft");
        context.fillRect(0, height / 2 - 0.5, width, 1);
        context.fillStyle = paint("--scheduled-solid");
        for (const share of marks) box(context, share * (width - 3), 2, 3, height - 4, 1.5);
        return;
      }
      // Closer together than marks can be: a band from the first tick to the last.
      const begin = (marks[0] ?? 0) * width;
      context.fillStyle = paint("--scheduled-solid");
      context.globalAlpha = 0.45;
      box(context, begin, 2, (rest === null ? (marks.at(-1) ?? 1) * width : width) - begin, height - 4, 1.5);
      context.globalAlpha = 1;
    },
    [job, since, until],
  );
  const first = job.fires[0];
  const last = job.fires.at(-1);
  const told = first && last ? words.strip(job.name, job.count, absolute(first, zone, now, "second"), absolute(last, zone, now, "second")) : job.name;
  const tip = useTip(job.count > job.fires.length ? `${told}. ${words.cut(job.fires.length, job.count)}` : told);
  return <canvas ref={ref} className={styles.strip} role="img" aria-label={told} {...(tip as object)} />;
}

/** The hours or days above the strips. */
export function StripHead({ since, until }: { since: number; until: number }) {
  const zone = zoneName(useZoneChoice());
  const isLong = until - since > 36 * 3_600_000;
  const shown = timeMarks(since, until, 6).filter((at) => (at - since) / (until - since) < 0.94);
  return (
    <span className={styles.axis}>
      {shown.map((at) => (
        <span key={at} style={{ insetInlineStart: `${((at - since) / (until - since)) * 100}%` }}>
          {isLong ? dayOf(at, zone).slice(5).split("-").reverse().join("/") : clockTime(at, zone, "minute")}
        </span>
      ))}
    </span>
  );
}
