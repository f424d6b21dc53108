import { Icon, type IconName } from "~/components/Icon";
import badge from "~/components/StateBadge.module.css";
import { useTip } from "~/components/Tip";
import { conditionOf, type QueueCondition } from "~/model/queues";
import type { Tone } from "~/model/states";
import { words } from "~/texts/queues";
import type { Queue } from "./queries";

const LOOKS: Record<QueueCondition, [Tone, IconName]> = {
  paused: ["held", "pause"],
  unserved: ["failed", "unplugged"],
  limited: ["held", "hand"],
  full: ["scheduled", "hourglass"],
  running: ["running", "play"],
  waiting: ["ready", "dot"],
  held: ["held", "hand"],
  idle: ["waiting", "check"],
};

/** How a queue is, as colour, icon and word. */
export function Condition({ queue }: { queue: Queue }) {
  const condition = conditionOf(queue);
  const [tone, icon] = LOOKS[condition];
  const tip = useTip(queue.paused?.reason ?? words.meanings[condition]);
  return (
    <span className={badge.badge} data-tone={tone} {...tip}>
      <Icon name={icon} size={14} strokeWidth={2.2} />
      {words.conditions[condition]}
    </span>
  );
}
