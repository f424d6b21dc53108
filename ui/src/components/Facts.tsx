import type { ReactNode } from "react";
import styles from "./Facts.module.css";

/** Names and values, one below the other or in columns. Facts without a value are left out. */
export function Facts({ items, columns }: { items: ([ReactNode, ReactNode] | null | false | undefined | "" | 0)[]; columns?: boolean }) {
  return (
    <dl className={columns ? `${styles.facts} ${styles.columns}` : styles.facts}>
      {items.map((item, index) =>
        item && item[1] !== null && item[1] !== undefined && item[1] !== "" ? (
          <div key={index}>
            <dt>{item[0]}</dt>
            <dd>{item[1]}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}
