import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useId, useState } from "react";
import { tagged, client } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button, IconButton } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { ErrorNotice } from "~/components/ErrorNotice";
import { TextField } from "~/components/Field";
import { Icon } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { sendUnlessUndone, toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { type Days, mergedDays, sameDays, sorted, toggled, WEEKDAYS } from "~/model/calendarDays";
import { serverNow } from "~/model/clock";
import { browserZone } from "~/model/times";
import { text } from "~/texts/en";
import { words } from "~/texts/calendars";
import { curl } from "../runs/commands";
import { Conflict } from "./Conflict";
import { Effects } from "./Effects";
import { ImportDialog } from "./ImportDialog";
import { calendarQuery, daysInWords, daysOf, putCalendar, removeCalendar, todayIn, useEffects, usersQuery } from "./queries";
import { YearView } from "./YearView";
import styles from "./CalendarPage.module.css";

const ZONES = typeof Intl.supportedValuesOf === "function" ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC"];
const NEW: Days = { timezone: "UTC", dates: [], weekdays: [] };

interface Base {
  days: Days;
  etag: string | null;
}

export function CalendarPage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const { edit } = useSearch({ strict: false }) as { edit?: string };
  const found = useQuery(calendarQuery(name));
  useLiveRefresh(() => void found.refetch(), { every: 5_000 });
  const mayOperate = useMay("operate");
  if (found.data) return <Calendar key={name} name={name} saved={{ days: daysOf(found.data.calendar), etag: found.data.etag }} jobs={found.data.calendar.jobs} isNew={false} />;
  if (!found.error) return <Skeleton lines={6} height="1.5rem" />;
  if (asApiError(found.error).kind !== "not_found") return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  if (edit && mayOperate) return <Calendar key={`new ${name}`} name={name} saved={{ days: { ...NEW, timezone: browserZone() }, etag: null }} jobs={0} isNew />;
  return (
    <EmptyState level={1} icon="calendars" title={words.missing(name)} action={mayOperate && <Link to={`/calendars/${encodeURIComponent(name)}` as never} search={{ edit: "1" } as never}>{words.new}</Link>}>
      <p>{words.missingHint}</p>
    </EmptyState>
  );
}

function Calendar({ name, saved, jobs, isNew }: { name: string; saved: Base; jobs: number; isNew: boolean }) {
  const navigate = useNavigate();
  const mayOperate = useMay("operate");
  const [draft, setDraft] = useState<{ base: Base; days: Days } | null>(isNew ? { base: saved, days: saved.days } : null);
  const [dialog, setDialog] = useState<"import" | "command" | null>(null);
  const [theirs, setTheirs] = useState<Base | null>(null);
  const zones = useId();
  const base = draft?.base ?? saved;
  const days = draft?.days ?? saved.days;
  const isChanged = isNew ? days.dates.length + days.weekdays.length > 0 : !sameDays(days, base.days);
  const today = todayIn(days.timezone, serverNow());
  const [year, setYear] = useState(Number(today.slice(0, 4)));
  const { effects, isOld, problem } = useEffects(name, days, isChanged && !isNew);
  const change = (part: Partial<Days>) => {
    save.reset();
    setDraft({ base, days: { ...days, ...part } });
  };
  const refresh = () => void queryClient.invalidateQueries({ predicate: ({ queryKey }) => ["calendar", "calendars"].includes(String(queryKey[1])) });
  const save = useMutation({
    mutationFn: () => putCalendar(name, days, base.etag),
    onSuccess: ({ data: made, etag }) => {
      const before = base;
      queryClient.setQueryData(calendarQuery(name).queryKey, { calendar: made, etag });
      setDraft(null);
      const undo = () =>
        void putCalendar(name, before.days, etag).then(() => {
          toast({ message: words.restored(name), seconds: 3 });
          refresh();
        }, toastProblem);
      toast({ message: words.saved(name), ...(isNew ? {} : { action: { label: text.undo, run: undo } }) });
      refresh();
      if (isNew) void navigate({ to: `/calendars/${encodeURIComponent(name)}` as never, replace: true, search: (({ edit: _, ...rest }: Record<string, unknown>) => rest) as never });
    },
    onError: async (error) => {
      if (asApiError(error).status !== 412) return;
      const now = await tagged(client.GET("/v1/calendars/{name}", { params: { path: { name } } }));
      setTheirs({ days: daysOf(now.data), etag: now.etag });
    },
  });
  const refused = save.error && asApiError(save.error).status !== 412 ? asApiError(save.error) : null;
  const wrong = problem ?? refused;
  const isEmpty = days.dates.length + days.weekdays.length === 0;
  const remove = () => {
    sendUnlessUndone(words.deleting(name), () => removeCalendar(name).then(refresh), words.notDeleted(name));
    void navigate({ to: "/calendars" as never });
  };
  const settle = (next: Days) => {
    if (theirs) setDraft({ base: theirs, days: next });
    setTheirs(null);
    save.reset();
  };
  useKeys([
    { key: "[", label: words.before, icon: "agenda", run: () => setYear(year - 1) },
    { key: "]", label: words.after, icon: "agenda", run: () => setYear(year + 1) },
    ...(mayOperate ? [{ key: "i", label: words.import, icon: "download" as const, run: () => setDialog("import") }] : []),
  ]);
  const command = curl("PUT", `/v1/calendars/${encodeURIComponent(name)}`, sorted(days));
  return (
    <>
      <PageHeader
        title={name}
        above={
          <nav aria-label={words.title}>
            <Link to={"/calendars" as never}>{words.title}</Link>
            <Icon name="chevron" size={12} />
            <span>{isChanged || isNew ? words.unsaved : words.usedBy(jobs)}</span>
          </nav>
        }
        lead={`${daysInWords(days)} · ${days.timezone}`}
        actions={
          <>
            {mayOperate && (
              <Button icon="download" onClick={() => setDialog("import")}>
                {words.import}
              </Button>
            )}
            <Menu
              label={text.moreActions}
              kind="plain"
              entries={[
                { label: text.run.copyCommand, icon: "copy", onSelect: () => setDialog("command") },
                ...(mayOperate && !isNew ? ["line" as const, { label: words.delete, icon: "trash" as const, isDangerous: true, blocked: jobs > 0 ? words.inUse(jobs) : null, onSelect: remove }] : []),
              ]}
            />
          </>
        }
      />
      <div className={styles.columns}>
        <section className={styles.view} aria-label={words.year}>
          <div className={styles.years}>
            <IconButton icon="chevron" className={styles.back} label={words.before} onClick={() => setYear(year - 1)} />
            <h2>{year}</h2>
            <IconButton icon="chevron" label={words.after} onClick={() => setYear(year + 1)} />
            {year !== Number(today.slice(0, 4)) && (
              <Button size="small" kind="quiet" onClick={() => setYear(Number(today.slice(0, 4)))}>
                {words.thisYear}
              </Button>
            )}
            <ul className={styles.legend}>
              <li>
                <i data-state="date" /> {words.legend.date}
              </li>
              <li>
                <i data-state="weekly" /> {words.legend.weekday}
              </li>
            </ul>
          </div>
          <YearView year={year} days={days} saved={base.days} today={today} onToggle={mayOperate ? (date) => change({ dates: toggled(days.dates, date) }) : null} />
        </section>
        <aside className={styles.side}>
          {mayOperate && (
            <form
              className={styles.card}
              onSubmit={(event) => {
                event.preventDefault();
                if (isChanged && !isEmpty && !problem) save.mutate();
              }}
            >
              <p className="quiet">{words.hint}</p>
              <fieldset className={styles.weekly}>
                <legend>{words.everyWeek}</legend>
                {WEEKDAYS.map((day) => (
                  <button key={day} type="button" aria-pressed={days.weekdays.includes(day)} onClick={() => change({ weekdays: toggled(days.weekdays, day) })}>
                    {words.shortWeekdays[day]}
                  </button>
                ))}
              </fieldset>
              <TextField label={words.zone} hint={words.zoneHint} list={zones} value={days.timezone} error={wrong?.field === "timezone" ? wrong.detail : undefined} onChange={(event) => change({ timezone: event.target.value })} />
              <datalist id={zones}>
                {ZONES.map((zone) => (
                  <option key={zone} value={zone} />
                ))}
              </datalist>
              {wrong && wrong.field !== "timezone" && !isEmpty && <ErrorNotice error={wrong} />}
              <div className={styles.actions}>
                <Button kind="primary" type="submit" isBusy={save.isPending} blocked={isEmpty ? words.excludesNothing : !isChanged ? words.nothingChanged : null}>
                  {words.save}
                </Button>
                {isChanged && !isNew && <Button onClick={() => setDraft(null)}>{words.discard}</Button>}
              </div>
            </form>
          )}
          {isChanged || isNew ? (
            <section className={styles.card} aria-label={words.effect}>
              <h2>{words.effect}</h2>
              {isNew ? <p className="quiet">{words.effectNew}</p> : effects ? <Effects effects={effects} isOld={isOld} /> : problem ? null : <Skeleton lines={4} />}
            </section>
          ) : (
            <Users name={name} />
          )}
        </aside>
      </div>
      {dialog === "import" && (
        <ImportDialog
          known={days.dates}
          onClose={() => setDialog(null)}
          onAdd={(dates) => {
            change({ dates: [...days.dates, ...dates] });
            setDialog(null);
          }}
        />
      )}
      <Dialog isOpen={dialog === "command"} onClose={() => setDialog(null)} title={words.command} width="medium">
        <CopyCommand commands={[{ label: "curl", command }]} />
      </Dialog>
      {theirs && <Conflict base={base.days} theirs={theirs.days} mine={days} onClose={() => setTheirs(null)} onDrop={() => settle(theirs.days)} onMerge={() => settle(mergedDays(base.days, theirs.days, days))} />}
    </>
  );
}

function Users({ name }: { name: string }) {
  const found = useQuery(usersQuery(name));
  return (
    <section className={styles.card}>
      <h2>{words.jobs}</h2>
      {found.error ? (
        <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />
      ) : !found.data ? (
        <Skeleton lines={3} />
      ) : found.data.items.length === 0 ? (
        <p className="quiet">{words.noJobs}</p>
      ) : (
        <ul className={styles.jobs}>
          {found.data.items.map((job) => (
            <li key={job.id}>
              <p className={styles.jobName}>
                <Link to={`/jobs/${encodeURIComponent(job.name)}` as never}>{job.name}</Link>
                {job.status === "paused" && <span className="quiet">{words.paused}</span>}
              </p>
              <p className="quiet">
                {job.schedule_words} · {words.choices[(job.schedule as { on_excluded?: string }).on_excluded ?? "skip"]}
              </p>
            </li>
          ))}
        </ul>
      )}
      {found.data?.next && <p className="quiet">{words.moreJobs}</p>}
    </section>
  );
}

