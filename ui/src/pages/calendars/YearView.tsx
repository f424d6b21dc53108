import { type KeyboardEvent, memo, useRef, useState } from "react";
import { classes } from "~/components/classes";
import { type Days, moved, WEEKDAYS, weekdayOf, weeksOf } from "~/model/calendarDays";
import { LOCALE } from "~/model/times";
import { words } from "~/texts/calendars";
import styles from "./YearView.module.css";

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };
const MONTHS = Array.from({ length: 12 }, (_, month) => month);
const monthName = (year: number, month: number) => new Intl.DateTimeFormat(LOCALE, { month: "long", timeZone: "UTC" }).format(Date.UTC(year, month, 1));
const dayName = (date: string) => new Intl.DateTimeFormat(LOCALE, { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" }).format(new Date(`${date}T00:00:00Z`));

interface Properties {
  year: number;
  days: Days;
  saved: Days;
  today: string;
  onToggle: ((date: string) => void) | null;
}

/** A year of months. The arrow keys go from day to day, Enter and Space exclude one. */
export function YearView({ year, days, saved, today, onToggle }: Properties) {
  const root = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState(today);
  const [dates, savedDates] = [new Set(days.dates), new Set(saved.dates)];
  const entry = focused.startsWith(`${year}-`) ? focused : `${year}-01-01`;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = moved(entry, step);
    if (!next.startsWith(`${year}-`)) return;
    setFocused(next);
    root.current?.querySelector<HTMLElement>(`[data-date="${next}"]`)?.focus();
  };
  return (
    <div ref={root} className={styles.year} role="group" aria-label={words.yearLabel(year)} onKeyDown={onKeyDown}>
      {MONTHS.map((month) => (
        <section key={month} className={styles.month} aria-label={`${monthName(year, month)} ${year}`}>
          <h3>{monthName(year, month)}</h3>
          <div className={styles.heads} aria-hidden="true">
            {WEEKDAYS.map((day) => (
              <span key={day} data-excluded={days.weekdays.includes(day) || undefined}>
                {words.initials[day]}
              </span>
            ))}
          </div>
          <div className={styles.days}>
            {weeksOf(year, month).flatMap((week, row) =>
              week.map((date, column) =>
                date === null ? (
                  <span key={`${row} ${column}`} />
                ) : (
                  <Day
                    key={date}
                    date={date}
                    isDate={dates.has(date)}
                    isWeekly={days.weekdays.includes(weekdayOf(date))}
                    wasExcluded={savedDates.has(date) || saved.weekdays.includes(weekdayOf(date))}
                    isToday={date === today}
                    isPast={date < today}
                    isEntry={date === entry}
                    onToggle={onToggle}
                    onFocus={setFocused}
                  />
                ),
              ),
            )}
          </div>
        </section>
      ))}
    </div>
  );
}

interface DayProperties {
  date: string;
  isDate: boolean;
  isWeekly: boolean;
  wasExcluded: boolean;
  isToday: boolean;
  isPast: boolean;
  isEntry: boolean;
  onToggle: ((date: string) => void) | null;
  onFocus: (date: string) => void;
}

const Day = memo(function Day({ date, isDate, isWeekly, wasExcluded, isToday, isPast, isEntry, onToggle, onFocus }: DayProperties) {
  const isExcluded = isDate || isWeekly;
  const change = isExcluded === wasExcluded ? undefined : isExcluded ? "added" : "removed";
  const state = change ?? (isDate ? "excluded" : isWeekly ? "weekly" : "free");
  const common = {
    className: classes(styles.day, isToday && styles.today, isPast && styles.past),
    "data-date": date,
    "data-state": isDate ? "date" : isWeekly ? "weekly" : undefined,
    "data-change": change,
  };
  const number = Number(date.slice(8));
  if (!onToggle)
    return (
      <span {...common} {...(isExcluded ? { role: "img", "aria-label": `${dayName(date)}, ${words.day[state]}` } : { "aria-hidden": true })}>
        {number}
      </span>
    );
  return (
    <button type="button" {...common} tabIndex={isEntry ? 0 : -1} aria-pressed={isExcluded} aria-label={`${dayName(date)}, ${words.day[state]}`} onClick={() => onToggle(date)} onFocus={() => onFocus(date)}>
      {number}
    </button>
  );
});
