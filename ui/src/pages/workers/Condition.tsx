import { Icon, type IconName } from "~/components/Icon";
import badge from "~/components/StateBadge.module.css";
import { Tag } from "~/components/Tag";
import { useTip } from "~/components/Tip";
import { words } from "~/texts/workers";
import { type Condition, conditionOf, TONE, type Worker } from "./queries";
import styles from "./workers.module.css";

const ICONS: Record<Condition, IconName> = { healthy: "check", late: "warning", draining: "hourglass", safe: "stop", left: "slash", died: "close" };

/** How a worker is, as colour, icon and word. */
export function ConditionBadge({ condition }: { condition: Condition }) {
  const tip = useTip(words.meanings[condition]);
  return (
    <span className={badge.badge} data-tone={TONE[condition]} {...tip}>
      <Icon name={ICONS[condition]} size={14} strokeWidth={2.2} />
      {words.health[condition]}
    </span>
  );
}

export function WorkerCondition({ worker }: { worker: Worker }) {
  return <ConditionBadge condition={conditionOf(worker)} />;
}

export function Labels({ labels }: { labels: Record<string, string> }) {
  const names = Object.entries(labels);
  if (names.length === 0) return null;
  return (
    <span className={styles.labels}>
      {names.map(([name, value]) => (
        <Tag key={name} name={`${name}=${value}`} />
      ))}
    </span>
  );
}
