import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useZoneChoice } from "~/app/useZone";
import type { Density } from "~/api/schema";
import { box, useCanvas } from "~/components/canvas";
import { hideTip, showTip } from "~/components/Tip";
import { clockTime, millis, zoneLabel, zoneName } from "~/model/times";
import { text } from "~/texts/en";
import styles from "./OverviewPage.module.css";

const { nextHour: words } = text.overview;
const MINUTE = 60_000;

/** How many ticks fire in each minute of the next hour. */
export function NextHour({ density }: { density: Density }) {
  const { minutes } = density;
  const since = millis(density.since);
  const zone = zoneName(useZoneChoice());
  const [at, setAt] = useState<number | null>(null);
  const total = minutes.reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...minutes);
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const each = width / minutes.length;
      minutes.forEach((count, index) => {
        const high = count === 0 ? 2 : Math.max(4, (count / most) * (height - 2));
        context.fillStyle = paint(count === 0 ? "--line-soft" : index === at ? "--accent" : "--scheduled-solid");
        box(context, index * each + 1, height - high, each - 2, high, 2);
      });
    },
    [minutes, at, most],
  );
  useEffect(() => {
    const canvas = ref.current;
    if (!canvas || at === null) return;
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const each = width / minutes.length;
    showTip(canvas, `${clockTime(since + at * MINUTE, zone, "minute")}: ${words.minute(minutes[at] ?? 0)}`, new DOMRect(left + at * each, top, each, height));
    return hideTip;
  }, [at, minutes, since, zone, ref]);
  return (
    <section className={styles.section} aria-label={words.title}>
      <div className={styles.sectionHead}>
        <h2>{words.title}</h2>
        <Link to={"/agenda" as never}>{words.agenda}</Link>
      </div>
      <div className={styles.density}>
        <p>
          {total === 0 ? (
            words.none
          ) : (
            <>
              <strong>{words.total(total, density.more)}</strong>, {words.peak(most, clockTime(since + minutes.indexOf(most) * MINUTE, zone, "minute"))}
            </>
          )}
        </p>
        <canvas
          ref={ref}
          role="img"
          aria-label={words.label(total)}
          onPointerMove={(event) => {
            const { left, width } = event.currentTarget.getBoundingClientRect();
            setAt(Math.max(0, Math.min(minutes.length - 1, Math.floor(((event.clientX - left) / width) * minutes.length))));
          }}
          onPointerLeave={() => setAt(null)}
        />
        <div className={styles.axis}>
          <span>{clockTime(since, zone, "minute")}</span>
          <span>{zoneLabel(zone, since)}</span>
          <span>{clockTime(since + minutes.length * MINUTE, zone, "minute")}</span>
        </div>
      </div>
    </section>
  );
}
