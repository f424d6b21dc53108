import { type ReactNode, useEffect } from "react";
import { text } from "~/texts/en";
import styles from "./PageHeader.module.css";

interface Properties {
  title: string;
  /** Shown in place of the title, which stays that of the window. */
  heading?: ReactNode;
  lead?: ReactNode;
  actions?: ReactNode;
  above?: ReactNode;
}

/** The head of a page: its title, one line, and its actions. */
export function PageHeader({ title, heading, lead, actions, above }: Properties) {
  useEffect(() => {
    document.title = `${title} · ${text.product}`;
  }, [title]);
  return (
    <header className={styles.header}>
      {above && <div className={styles.above}>{above}</div>}
      <div className={styles.titles}>
        <h1>{heading ?? title}</h1>
        {lead && <div className={styles.lead}>{lead}</div>}
      </div>
      {actions && <div className={styles.actions}>{actions}</div>}
    </header>
  );
}
