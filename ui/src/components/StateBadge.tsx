import { ICONS, isState, type RunState } from "~/model/states";
import { text } from "~/texts/en";
import { classes } from "./classes";
import { Icon } from "./Icon";
import { useTip } from "./Tip";
import styles from "./StateBadge.module.css";

/** A state as colour, icon and word. Hover explains the word. */
export function StateBadge({ state, word, isQuiet, explain = true }: { state: string; word?: string; isQuiet?: boolean; explain?: boolean }) {
  const known: RunState = isState(state) ? state : "waiting";
  const tip = useTip(explain ? text.stateMeanings[known] : null);
  return (
    <span className={classes(styles.badge, isQuiet && styles.quiet)} data-tone={known} {...tip}>
      <Icon name={ICONS[known]} size={14} strokeWidth={2.2} />
      {word ?? (isState(state) ? text.states[state] : state)}
    </span>
  );
}
