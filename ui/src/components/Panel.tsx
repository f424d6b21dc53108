import type { ReactNode } from "react";
import { classes } from "./classes";
import styles from "./Panel.module.css";

interface Properties {
  title?: ReactNode;
  hint?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  /** The content reaches to the edges, as a table does. */
  isFlush?: boolean;
  className?: string;
}

/** A part of a page: a heading, one line about it, and its content on a surface. */
export function Panel({ title, hint, actions, children, isFlush, className }: Properties) {
  return (
    <section className={classes(styles.panel, className)}>
      {(title || actions) && (
        <header className={styles.head}>
          <div>
            {title && <h2>{title}</h2>}
            {hint && <p>{hint}</p>}
          </div>
          {actions && <div className={styles.actions}>{actions}</div>}
        </header>
      )}
      <div className={isFlush ? undefined : styles.surface}>{children}</div>
    </section>
  );
}

export interface Figure {
  label: ReactNode;
  value: ReactNode;
  note?: ReactNode;
  tone?: "problem" | "notice";
}

/** A row of numbers that say how things stand. */
export function Figures({ items }: { items: (Figure | null | false)[] }) {
  return (
    <dl className={styles.figures}>
      {items.map(
        (item, index) =>
          item && (
            <div key={index} data-tone={item.tone}>
              <dt>{item.label}</dt>
              <dd className={styles.value}>{item.value}</dd>
              {item.note && <dd className={styles.note}>{item.note}</dd>}
            </div>
          ),
      )}
    </dl>
  );
}
