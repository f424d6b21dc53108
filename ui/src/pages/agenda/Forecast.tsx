import { useMemo, useState } from "react";
import { useZoneChoice } from "~/app/useZone";
import type { Upcoming } from "~/api/schema";
import { Icon } from "~/components/Icon";
import { TimeChart } from "~/components/TimeChart";
import { Explained } from "~/components/Tip";
import { greatestOf } from "~/model/agenda";
import { useNow } from "~/model/clock";
import { number } from "~/model/numbers";
import { absolute, millis, zoneName } from "~/model/times";
import { words } from "~/texts/agenda";
import styles from "./AgendaPage.module.css";

/** When it gets crowded, and whether the slots suffice. */
export function Forecast({ found, onBrush }: { found: Upcoming; onBrush: (from: number, to: number) => void }) {
  const [cursor, setCursor] = useState<number | null>(null);
  const zone = zoneName(useZoneChoice());
  const now = useNow();
  const { buckets, slots } = found;
  const busiest = greatestOf(buckets, "fires");
  const fullest = greatestOf(buckets, "slots");
  const total = buckets.reduce((sum, bucket) => sum + bucket.fires, 0);
  const unknown = found.jobs.filter((job) => job.seconds === null).length;
  const when = (at: string) => absolute(at, zone, now, "minute");
  const isTight = fullest !== null && fullest.slots > slots;
  const fires = useMemo(() => [{ name: "fires", label: words.firesLine, color: "--scheduled-solid", values: buckets.map((bucket) => bucket.fires) }], [buckets]);
  const needed = useMemo(
    () => [
      { name: "needed", label: words.slotsLine, color: isTight ? "--failed-solid" : "--running-solid", values: buckets.map((bucket) => bucket.slots) },
      { name: "capacity", label: words.capacity, color: "--waiting-solid", values: buckets.map(() => slots) },
    ],
    [buckets, slots, isTight],
  );
  const shared = { since: millis(found.since), step: found.step * 1000, cursor, onCursor: setCursor, onBrush, none: words.none, isWhole: true, tell: number };
  const titles = { fires: words.fires(words.steps(found.step)), slots: words.slots };
  return (
    <section className={styles.forecast}>
      <p className={styles.sentence}>
        <strong>{words.total(total, found.more)}</strong> {`${words.in(found.jobs.length)}. `}
        {busiest && words.busiest(busiest.fires, when(busiest.at))}
      </p>
      {fullest && (
        <p className={isTight ? styles.tight : styles.sentence}>
          {isTight && <Icon name="warning" size={16} />}
          <span>
            <Explained text={words.forecastHint}>{words.forecast}</Explained>{": "}
            {isTight ? (slots === 0 ? words.noSlots(fullest.slots) : words.tooMany(fullest.slots, slots, when(fullest.at))) : words.enough(fullest.slots, slots)}
            {unknown > 0 && <span className="quiet">{` ${words.unknown(unknown)}`}</span>}
          </span>
        </p>
      )}
      <div className={styles.charts}>
        <TimeChart title={titles.fires} label={words.chartLabel(titles.fires)} lines={fires} form="bars" level={2} {...shared} />
        <TimeChart title={titles.slots} label={words.chartLabel(titles.slots)} lines={needed} form="lines" level={2} {...shared} />
      </div>
    </section>
  );
}
