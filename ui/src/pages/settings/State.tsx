import type { ReactNode } from "react";
import { Icon, type IconName } from "~/components/Icon";
import styles from "./settings.module.css";

const ICONS: Record<string, IconName> = { good: "check", notice: "warning", problem: "warning", quiet: "slash" };

/** A word about how something is, with an icon. */
export function State({ tone, children }: { tone: "good" | "notice" | "problem" | "quiet"; children: ReactNode }) {
  return (
    <span className={styles.state} data-tone={tone}>
      <Icon name={ICONS[tone] ?? "check"} size={16} />
      {children}
    </span>
  );
}
