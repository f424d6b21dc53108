import styles from "./Skeleton.module.css";

/** Grey lines in place of what is being loaded. They appear only if it takes a moment. */
export function Skeleton({ lines = 3, height = "1rem" }: { lines?: number; height?: string }) {
  return (
    <div className={styles.skeleton} aria-hidden="true">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} style={{ height, width: `${[92, 78, 85, 64, 88][index % 5]}%` }} />
      ))}
    </div>
  );
}
