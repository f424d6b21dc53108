import { useState } from "react";
import { Button } from "~/components/Button";
import { Dialog } from "~/components/Dialog";
import { Checkbox, Field } from "~/components/Field";
import { serverNow } from "~/model/clock";
import { type Imported, readCalendar } from "~/model/icalendar";
import { words } from "~/texts/calendars";
import { longDay } from "./queries";
import styles from "./CalendarPage.module.css";

const SIZE_MAX = 5_000_000;
const YEARS_AHEAD = 5;
const SHOWN = 400;

/** Days from a file, of which one chooses. */
export function ImportDialog({ known, onAdd, onClose }: { known: readonly string[]; onAdd: (dates: string[]) => void; onClose: () => void }) {
  const [found, setFound] = useState<Imported | null>(null);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState("");
  const have = new Set(known);
  const wanted = (found?.days ?? []).map((day) => day.date).filter((date) => !left.has(date) && !have.has(date));
  const open = async (file: File | undefined) => {
    setFound(null);
    setLeft(new Set());
    if (!file) return;
    if (file.size > SIZE_MAX) return setProblem(words.tooLarge);
    const read = readCalendar(await file.text(), new Date(serverNow()).getUTCFullYear() + YEARS_AHEAD);
    setProblem(read.days.length === 0 ? words.noDays : "");
    setFound(read);
  };
  const choose = (date: string) =>
    setLeft((before) => {
      const next = new Set(before);
      if (!next.delete(date)) next.add(date);
      return next;
    });
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={words.importTitle}
      width="medium"
      footer={
        <Button kind="primary" blocked={wanted.length === 0 ? words.nothingChanged : null} onClick={() => onAdd(wanted)}>
          {words.add(wanted.length)}
        </Button>
      }
    >
      <div className={styles.import}>
        <Field label={words.file} hint={words.importHint} error={problem}>
          {(inner) => <input type="file" accept=".ics,text/calendar" {...inner} onChange={(event) => void open(event.target.files?.[0])} />}
        </Field>
        {found && found.days.length > 0 && (
          <>
            <p>{words.found(found.days.length, longDay(found.days[0]?.date ?? ""), longDay(found.days.at(-1)?.date ?? ""))}</p>
            <ul className={styles.found} tabIndex={0} aria-label={words.importTitle}>
              {found.days.slice(0, SHOWN).map((day) => (
                <li key={day.date}>
                  <Checkbox
                    label={
                      <>
                        <span className={styles.foundDate}>{longDay(day.date)}</span> {day.name || words.unnamed}
                      </>
                    }
                    hint={have.has(day.date) ? words.known : undefined}
                    checked={!left.has(day.date)}
                    disabled={have.has(day.date)}
                    onChange={() => choose(day.date)}
                  />
                </li>
              ))}
              {found.days.length > SHOWN && <li className="quiet">{words.listed(found.days.length - SHOWN)}</li>}
            </ul>
          </>
        )}
        {found && found.skipped.length > 0 && (
          <details>
            <summary>{words.skipped(found.skipped.length)}</summary>
            <ul className={styles.dayList}>
              {found.skipped.slice(0, SHOWN).map((event, index) => (
                <li key={index}>
                  <span>{event.name || words.unnamed}</span>
                  <span className="quiet">{words.reasons[event.reason]}</span>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </Dialog>
  );
}
