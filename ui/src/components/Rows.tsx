import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";
import styles from "./Rows.module.css";

/** A short list of things with something to say about each. */
export function Rows({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul className={styles.list} aria-label={label}>
      {children}
    </ul>
  );
}

interface RowProperties {
  icon: IconName;
  tone?: "problem" | "notice";
  title: ReactNode;
  kind?: ReactNode;
  facts: ReactNode;
  actions?: ReactNode;
  /** Below the title. */
  children?: ReactNode;
}

export function Row({ icon, tone, title, kind, facts, actions, children }: RowProperties) {
  return (
    <li className={styles.row} data-tone={tone}>
      <span className={styles.mark}>
        <Icon name={icon} size={18} />
      </span>
      <div className={styles.what}>
        <h2 className={styles.title}>
          {title}
          {kind && <span className={styles.kind}>{kind}</span>}
        </h2>
        {children}
      </div>
      <div className={styles.facts}>{facts}</div>
      {actions && <div className={styles.actions}>{actions}</div>}
    </li>
  );
}

interface LineProperties {
  name: ReactNode;
  detail: ReactNode;
  note: ReactNode;
  actions?: ReactNode;
  isQuiet?: boolean;
}

/** A thing that one line tells. */
export function Line({ name, detail, note, actions, isQuiet }: LineProperties) {
  return (
    <li className={styles.line} data-tone={isQuiet ? "quiet" : undefined}>
      <span className={styles.name}>{name}</span>
      <span className={styles.detail}>{detail}</span>
      <span className={styles.note}>{note}</span>
      {actions && <div className={styles.actions}>{actions}</div>}
    </li>
  );
}
