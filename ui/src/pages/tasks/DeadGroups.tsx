import { Link } from "@tanstack/react-router";
import { Panel } from "~/components/Panel";
import { Time } from "~/components/Time";
import { number } from "~/model/numbers";
import { words } from "~/texts/tasks";
import { type Group, headline, placeOf } from "../dead/queries";
import styles from "./tasks.module.css";

const SHOWN = 5;

/** The errors of a task that are still open. */
export function DeadGroups({ groups, task }: { groups: readonly Group[]; task: string }) {
  return (
    <Panel className={styles.part} title={words.dead} hint={words.deadHint} isFlush>
      <ul className={styles.dead} aria-label={words.dead}>
        {groups.slice(0, SHOWN).map((group) => (
          <li key={group.fingerprint}>
            <Link to={placeOf(group).to as never} search={placeOf(group).search as never} className={styles.name}>
              <bdi>{headline(group)}</bdi>
            </Link>
            <span className={styles.bad}>{number(group.count)}</span>
            <span className="quiet">
              <Time at={group.last_at} />
            </span>
          </li>
        ))}
        {groups.length > SHOWN && (
          <li>
            <Link to={"/dead" as never} search={{ task } as never}>
              {words.more(groups.length - SHOWN)}
            </Link>
          </li>
        )}
      </ul>
    </Panel>
  );
}
