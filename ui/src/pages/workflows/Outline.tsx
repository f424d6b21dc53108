import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useMemo, useRef } from "react";
import { classes } from "~/components/classes";
import { Icon } from "~/components/Icon";
import { ICONS } from "~/model/states";
import { depthsOf, type FoldedGraph, inOrder } from "~/model/workflowGraph";
import { text } from "~/texts/en";
import type { NodeLook } from "./drawGraph";
import styles from "./Outline.module.css";

const { workflows: words } = text;
const DEEPEST = 7;

interface Properties {
  folded: FoldedGraph;
  nodes: readonly NodeLook[];
  /** If set, only these. */
  marked: ReadonlySet<number> | null;
  selected: number;
  onSelect: (place: number) => void;
  onOpen: (place: number) => void;
}

/** The steps in the order in which they can run, indented by how far they are from the beginning. */
export function Outline({ folded, nodes, marked, selected, onSelect, onOpen }: Properties) {
  const frame = useRef<HTMLDivElement>(null);
  const depths = useMemo(() => depthsOf(folded.after), [folded]);
  const rows = useMemo(() => inOrder(folded.after).filter((place) => marked === null || marked.has(place)), [folded, marked]);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => frame.current, estimateSize: () => 40, overscan: 10 });
  useEffect(() => {
    const index = rows.indexOf(selected);
    if (index >= 0) virtual.scrollToIndex(index, { align: "auto" });
  }, [selected, rows, virtual]);
  const move = (event: KeyboardEvent, index: number) => {
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, to));
    const place = rows[next];
    if (place === undefined) return;
    onSelect(place);
    virtual.scrollToIndex(next, { align: "auto" });
    requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(`[data-at="${next}"] button`)?.focus({ preventScroll: true }));
  };
  return (
    <div ref={frame} className={styles.outline}>
      <ul className={styles.list} style={{ height: virtual.getTotalSize() }} aria-label={words.graph.outline}>
        {virtual.getVirtualItems().map((item) => {
          const place = rows[item.index] ?? 0;
          const node = nodes[place];
          if (!node) return null;
          return (
            <li key={item.key} data-at={item.index} aria-setsize={rows.length} aria-posinset={item.index + 1} className={styles.row} style={{ transform: `translateY(${item.start}px)` }}>
              <button
                type="button"
                aria-current={place === selected ? "true" : undefined}
                className={classes(styles.step, place === selected && styles.selected)}
                style={{ paddingInlineStart: `${0.75 + Math.min(DEEPEST, depths[place] ?? 0) * 0.7}rem` }}
                onClick={() => onSelect(place)}
                onDoubleClick={() => onOpen(place)}
                onKeyDown={(event) => move(event, item.index)}
              >
                <span className={styles.mark} data-tone={node.state}>
                  <Icon name={ICONS[node.state]} size={13} strokeWidth={2.2} />
                </span>
                <span className={styles.name}>{node.label}</span>
                <span className={styles.told}>
                  <span className={styles.below}>{node.below}</span>
                  {node.marks.length > 0 && <span className={styles.marks}>{node.marks.join(", ")}</span>}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
