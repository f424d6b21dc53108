import { Button } from "~/components/Button";
import { Dialog } from "~/components/Dialog";
import { type Days, differences } from "~/model/calendarDays";
import { words } from "~/texts/calendars";
import { longDay } from "./queries";
import styles from "./CalendarPage.module.css";

interface Properties {
  base: Days;
  theirs: Days;
  mine: Days;
  onClose: () => void;
  onDrop: () => void;
  onMerge: () => void;
}

/** Three versions of a calendar: nothing is saved until somebody has decided. */
export function Conflict({ base, theirs, mine, onClose, onDrop, onMerge }: Properties) {
  const { conflict } = words;
  const shown = (value: string | boolean) => (typeof value === "string" ? value : value ? conflict.excluded : conflict.free);
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={conflict.title}
      width="large"
      footer={
        <>
          <Button onClick={onDrop}>{conflict.drop}</Button>
          <Button kind="primary" onClick={onMerge}>
            {conflict.merge}
          </Button>
        </>
      }
    >
      <p className={styles.conflictText}>{conflict.text}</p>
      <div className={styles.scroll} tabIndex={0} role="region" aria-label={conflict.title}>
        <table className={styles.versions}>
          <thead>
            <tr>
              {conflict.heads.map((head, index) => (head ? <th key={head} scope="col">{head}</th> : <td key={index} />))}
            </tr>
          </thead>
          <tbody>
            {differences(base, theirs, mine).map((one) => (
              <tr key={`${one.kind} ${one.name}`}>
                <th scope="row">{one.kind === "zone" ? words.zone : one.kind === "weekday" ? words.weekdays[one.name] : longDay(one.name)}</th>
                <td>{shown(one.base)}</td>
                <td data-changed={one.theirs !== one.base || undefined}>{shown(one.theirs)}</td>
                <td data-changed={one.mine !== one.base || undefined}>{shown(one.mine)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Dialog>
  );
}
