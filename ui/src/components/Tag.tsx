import { Link } from "@tanstack/react-router";
import styles from "./Tag.module.css";

/** A tag; as a link, it leads to the runs that have it. */
export function Tag({ name, isLink }: { name: string; isLink?: boolean }) {
  if (!isLink) return <span className={styles.tag}>{name}</span>;
  return (
    <Link to="/runs" search={{ q: `tag:${/[\s"]/.test(name) ? JSON.stringify(name) : name}` }} className={styles.tag}>
      {name}
    </Link>
  );
}

export function Tags({ names, most = 3, isLink }: { names: readonly string[]; most?: number; isLink?: boolean }) {
  if (names.length === 0) return null;
  const rest = names.slice(most);
  return (
    <span className={styles.tags}>
      {names.slice(0, most).map((name) => (
        <Tag key={name} name={name} isLink={isLink} />
      ))}
      {rest.length > 0 && (
        <span className={styles.tag} title={rest.join(", ")}>
          +{rest.length}
        </span>
      )}
    </span>
  );
}
