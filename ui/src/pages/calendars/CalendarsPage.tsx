import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button } from "~/components/Button";
import { AskDialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { TextField } from "~/components/Field";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { nextExcluded } from "~/model/calendarDays";
import { serverNow } from "~/model/clock";
import { words } from "~/texts/calendars";
import { calendarsQuery, daysInWords, daysOf, longDay, todayIn } from "./queries";
import styles from "./CalendarsPage.module.css";

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$/;

export function CalendarsPage() {
  const found = useQuery(calendarsQuery());
  useLiveRefresh(() => void found.refetch(), { every: 5_000 });
  const navigate = useNavigate();
  const mayOperate = useMay("operate");
  const { new: asked } = useSearch({ strict: false }) as { new?: string };
  const [isNaming, setNaming] = useState(asked !== undefined);
  useKeys(mayOperate ? [{ key: "n", label: words.new, icon: "plus", run: () => setNaming(true) }] : []);
  if (found.error && !found.data) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  const items = found.data?.items ?? [];
  const create = mayOperate && (
    <Button kind="primary" icon="plus" onClick={() => setNaming(true)}>
      {words.new}
    </Button>
  );
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} actions={items.length > 0 && create} />
      {!found.data ? (
        <Skeleton lines={5} />
      ) : items.length === 0 ? (
        <EmptyState icon="calendars" title={words.emptyTitle} action={create}>
          <p>{words.emptyHint}</p>
        </EmptyState>
      ) : (
        <ul className={styles.list} aria-label={words.title}>
          {items.map((calendar) => {
            const days = daysOf(calendar);
            const next = nextExcluded(days, todayIn(days.timezone, serverNow()));
            return (
              <li key={calendar.name}>
                <Link to={`/calendars/${encodeURIComponent(calendar.name)}` as never} className={styles.row}>
                  <Leaf date={next} />
                  <span className={styles.what}>
                    <span className={styles.name}>{calendar.name}</span>
                    <span className={styles.words}>{daysInWords(days)}</span>
                  </span>
                  <span className={styles.facts}>
                    <span>
                      {words.next}: {next ? longDay(next) : words.noNext}
                    </span>
                    <span className="quiet">{days.timezone}</span>
                  </span>
                  <span className={styles.users}>{words.usedBy(calendar.jobs)}</span>
                </Link>
              </li>
            );
          })}
        </ul>
      )}
      {isNaming && <NameDialog taken={items.map((one) => one.name)} onClose={() => setNaming(false)} onNamed={(name) => void navigate({ to: `/calendars/${encodeURIComponent(name)}` as never, search: ((before: object) => ({ ...before, new: undefined, edit: "1" })) as never })} />}
    </>
  );
}

/** A leaf of a tear-off calendar with the next excluded day. */
function Leaf({ date }: { date: string | null }) {
  const [, month, day] = date?.split("-") ?? [];
  return (
    <span className={styles.leaf} aria-hidden="true">
      <span>{month ? new Intl.DateTimeFormat("en-GB", { month: "short", timeZone: "UTC" }).format(Date.UTC(2026, Number(month) - 1, 1)) : ""}</span>
      <strong>{day ? Number(day) : "–"}</strong>
    </span>
  );
}

function NameDialog({ taken, onClose, onNamed }: { taken: readonly string[]; onClose: () => void; onNamed: (name: string) => void }) {
  const [name, setName] = useState("");
  const problem = name === "" ? null : !NAME.test(name) ? words.nameWrong : taken.includes(name) ? words.nameTaken : null;
  return (
    <AskDialog isOpen onClose={onClose} title={words.newTitle} confirm={words.create} blocked={name === "" ? words.nameHint : problem} onConfirm={() => onNamed(name)}>
      <TextField label={words.name} hint={words.nameHint} error={problem} value={name} autoFocus maxLength={200} onChange={(event) => setName(event.target.value.trim())} />
    </AskDialog>
  );
}
