import type { ReactNode } from "react";
import { text } from "~/texts/en";
import { IconButton } from "./Button";
import styles from "./Peek.module.css";

/** A panel beside a list, for a first look at one row. */
export function Peek({ title, onClose, children, footer }: { title: ReactNode; onClose: () => void; children: ReactNode; footer?: ReactNode }) {
  return (
    <aside className={styles.peek} aria-label={text.list.peek}>
      <header className={styles.header}>
        <div className={styles.title}>{title}</div>
        <IconButton icon="close" label={text.close} size="small" onClick={onClose} />
      </header>
      <div className={styles.body} tabIndex={0}>
        {children}
      </div>
      {footer && <footer className={styles.footer}>{footer}</footer>}
    </aside>
  );
}
