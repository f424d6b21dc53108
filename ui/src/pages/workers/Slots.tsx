import { Link } from "@tanstack/react-router";
import type { WorkerRun } from "~/api/schema";
import { QueueLink } from "~/components/Places";
import { useTip } from "~/components/Tip";
import { useNow } from "~/model/clock";
import { number } from "~/model/numbers";
import { type Slot, type SlotGroup, slotGroups } from "~/model/slots";
import { duration, millis } from "~/model/times";
import { words } from "~/texts/workers";
import type { Worker } from "./queries";
import styles from "./workers.module.css";

/** Every slot is a cell. One with a run leads to it. */
export function Slots({ worker }: { worker: Worker }) {
  const groups = slotGroups<WorkerRun>(worker as Parameters<typeof slotGroups<WorkerRun>>[0]);
  return (
    <div className={styles.slots} role="group" aria-label={words.slotsOf(worker.running + worker.left_running, worker.slots)}>
      {groups.map((group) => (
        <div key={group.queue} className={styles.group}>
          <span className={styles.queue}>
            <QueueLink name={group.queue} className="truncate" />
            <span className={styles.used}>{`${number(used(group))}/${number(group.size)}`}</span>
          </span>
          <span className={styles.cells}>
            {group.cells.map((cell, index) => (
              <Cell key={cell.kind === "run" ? cell.run.id : index} cell={cell} />
            ))}
            <span className={styles.free}>{words.freeSlots(group.size - used(group))}</span>
            {group.rest > 0 && <span className={styles.rest}>{`+${number(group.rest)}`}</span>}
          </span>
        </div>
      ))}
    </div>
  );
}

const used = (group: SlotGroup<WorkerRun>) => group.cells.filter((cell) => cell.kind !== "free").length;

function Cell({ cell }: { cell: Slot<WorkerRun> }) {
  const now = useNow();
  const told =
    cell.kind === "run"
      ? words.run(cell.run.name ?? cell.run.task, cell.run.task, duration(Math.max(1, Math.floor((now - millis(cell.run.started_at)) / 1000))))
      : cell.kind === "left"
        ? words.leftRunning
        : cell.kind === "elsewhere"
          ? words.elsewhere
          : words.free;
  const tip = useTip(told);
  if (cell.kind === "run") return <Link to={`/runs/${cell.run.id}` as never} className={styles.cell} data-kind="run" aria-label={told} {...(tip as object)} />;
  return <span className={styles.cell} data-kind={cell.kind} {...tip} />;
}
