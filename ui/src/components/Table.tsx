import { useNavigate } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type MouseEvent, type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useKeys } from "~/app/keys";
import { leastWidth } from "~/model/columnWidths";
import { usePreferences } from "~/model/preferences";
import { text } from "~/texts/en";
import { Button } from "./Button";
import { classes } from "./classes";
import { ErrorNotice } from "./ErrorNotice";
import { Icon } from "./Icon";
import { Skeleton } from "./Skeleton";
import styles from "./Table.module.css";

export interface Column<T> {
  id: string;
  label: ReactNode;
  /** A track of a CSS grid, such as "7rem" or "minmax(12rem, 1fr)". */
  width: string;
  align?: "end";
  cell: (row: T) => ReactNode;
  /** Hidden where the table is narrower than this many pixels. */
  from?: number;
  /** Its place when rows are cards, on a phone: the title, beside it, below it, or nowhere. By default below. */
  card?: "title" | "side" | "none";
  /** Whether the column's label is shown in the card. */
  isLabelled?: boolean;
  /** Only shown when chosen. */
  isExtra?: boolean;
  isFixed?: boolean;
}

export interface Selection {
  ids: ReadonlySet<string>;
  change: (ids: ReadonlySet<string>) => void;
}

interface Properties<T> {
  /** Says what the table lists, for screen readers and preferences. */
  label: string;
  name: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  idOf: (row: T) => string;
  /** Where a row leads to. The first cell of `title` becomes the link. */
  linkOf?: (row: T) => { to: string; search?: object };
  nameOf?: (row: T) => string;
  selection?: Selection;
  onPeek?: (row: T | null) => void;
  peeked?: string | null;
  isLoading?: boolean;
  hasMore?: boolean;
  isLoadingMore?: boolean;
  onMore?: () => void;
  error?: unknown;
  onRetry?: () => void;
  onVisible?: (first: number, last: number) => void;
  /** Shown in place of rows, when there are none. */
  empty?: ReactNode;
  toneOf?: (row: T) => "quiet" | undefined;
}

/** A long list of rows: windowed, with keys (j, k, x, Enter, o), and as cards on a phone. */
export function Table<T>(properties: Properties<T>) {
  const { label, name, rows, columns, idOf, linkOf, nameOf, selection, onPeek, peeked, isLoading, hasMore, isLoadingMore, onMore, error, onRetry, onVisible, empty, toneOf } = properties;
  const { density, hidden } = usePreferences();
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1200);
  const [offset, setOffset] = useState(0);
  const [current, setCurrent] = useState<string | null>(null);
  const [isSelecting, setSelecting] = useState(false);
  const anchor = useRef<string | null>(null);
  const navigate = useNavigate();
  const hiddenHere = hidden[name];
  const asColumns = columns.filter((column) => {
    if (column.from && width < column.from) return false;
    return hiddenHere ? column.isFixed || !hiddenHere.includes(column.id) : !column.isExtra;
  });
  // Cards also wherever the columns need more than there is, such as with large text.
  const isCards = width < 600 || width < leastWidth(asColumns, selection !== undefined);
  const shown = isCards ? columns.filter((column) => column.card !== "none" && !column.isExtra) : asColumns;
  // On a phone, cards show their boxes once somebody wants to select; then a touch anywhere on a card selects it.
  const hasSelected = (selection?.ids.size ?? 0) > 0;
  useEffect(() => {
    // With the last one, the boxes go.
    if (hasSelected) return () => setSelecting(false);
  }, [hasSelected]);
  const selectsByTouch = isCards && selection !== undefined && (isSelecting || selection.ids.size > 0);

  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const measure = () => {
      setWidth(element.clientWidth);
      setOffset(element.getBoundingClientRect().top + window.scrollY);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);

  const tracks = `${selection ? "2.25rem " : ""}${shown.map((column) => column.width).join(" ")}`;
  const rowHeight = isCards ? 84 : density === "compact" ? 33 : 43;

  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin: offset,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : idOf(row);
    },
  });
  useEffect(() => virtual.measure(), [rowHeight, virtual]);
  const visible = virtual.getVirtualItems();
  const first = visible[0]?.index ?? 0;
  const last = visible.at(-1)?.index ?? 0;
  useEffect(() => {
    onVisible?.(first, last);
    if (hasMore && !isLoadingMore && !error && last >= rows.length - 30) onMore?.();
  }, [first, last, hasMore, isLoadingMore, error, rows.length, onMore, onVisible]);

  const indexOf = useCallback((id: string | null) => rows.findIndex((row) => idOf(row) === id), [rows, idOf]);
  const move = (step: number) => {
    const at = current === null ? -1 : indexOf(current);
    const next = Math.max(0, Math.min(rows.length - 1, at + step));
    const row = rows[next];
    if (row === undefined) return;
    setCurrent(idOf(row));
    virtual.scrollToIndex(next, { align: "auto" });
    if (peeked) onPeek?.(row);
    requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(idOf(row))}"] [data-link]`)?.focus({ preventScroll: true }));
  };
  const toggle = (id: string, isRange: boolean) => {
    if (!selection) return;
    const ids = new Set(selection.ids);
    const from = isRange ? indexOf(anchor.current) : -1;
    if (from >= 0) {
      const to = indexOf(id);
      for (let index = Math.min(from, to); index <= Math.max(from, to); index += 1) {
        const row = rows[index];
        if (row !== undefined) ids.add(idOf(row));
      }
    } else if (ids.has(id)) ids.delete(id);
    else ids.add(id);
    anchor.current = id;
    selection.change(ids);
  };
  const open = (row: T) => {
    const link = linkOf?.(row);
    if (link) void navigate(link as never);
  };
  const here = () => rows[indexOf(current)];
  useKeys([
    { key: "j", run: () => move(1) },
    { key: "k", run: () => move(-1) },
    { key: "x", run: () => current !== null && toggle(current, false) },
    { key: "Shift x", run: () => current !== null && toggle(current, true) },
    { key: "Enter", run: () => { const row = here(); if (row !== undefined) open(row); } },
    { key: "o", run: () => { const row = here(); if (row !== undefined) onPeek?.(peeked === idOf(row) ? null : row); } },
    { key: "Escape", run: () => { if (selection && selection.ids.size > 0) selection.change(new Set()); else onPeek?.(null); } },
  ]);

  const onRowClick = (event: MouseEvent, row: T) => {
    const target = event.target as HTMLElement;
    if (event.defaultPrevented || target.closest("a,button,input,label,[role='menu'],dialog")) return;
    if (window.getSelection()?.toString()) return;
    setCurrent(idOf(row));
    if (event.metaKey || event.ctrlKey || event.shiftKey) {
      if (selection) toggle(idOf(row), event.shiftKey);
      return;
    }
    open(row);
  };

  const onCardTouch = (event: MouseEvent, id: string) => {
    if ((event.target as HTMLElement).closest("input")) return;
    event.preventDefault();
    event.stopPropagation();
    toggle(id, false);
  };

  const isEmpty = rows.length === 0;
  const all = selection && (
    <input
      type="checkbox"
      aria-label={text.list.selectAll}
      checked={rows.length > 0 && rows.every((row) => selection.ids.has(idOf(row)))}
      ref={(box) => {
        if (box) box.indeterminate = selection.ids.size > 0 && !rows.every((row) => selection.ids.has(idOf(row)));
      }}
      onChange={(event) => selection.change(event.target.checked ? new Set(rows.map(idOf)) : new Set())}
    />
  );
  return (
    <div ref={frame} className={classes(styles.frame, isCards && styles.cards, selectsByTouch && styles.selecting, isEmpty && !isLoading && styles.bare, density === "compact" && styles.compact)}>
      {isCards && selection && !isEmpty && (
        <div className={styles.selectRow}>
          {selectsByTouch && (
            <label className={styles.all}>
              {all}
              {text.list.selectAllShort}
            </label>
          )}
          <Button
            kind="quiet"
            onClick={() => {
              setSelecting(!selectsByTouch);
              if (selectsByTouch) selection.change(new Set());
            }}
          >
            {selectsByTouch ? text.list.selectDone : text.list.select}
          </Button>
        </div>
      )}
      <div role="table" aria-label={label} aria-rowcount={hasMore ? -1 : rows.length + 1} className={styles.table}>
        {!isCards && !(isEmpty && !isLoading) && (
          <div role="rowgroup" className={styles.head}>
            <div role="row" className={styles.row} style={{ gridTemplateColumns: tracks }}>
              {selection && (
                <span role="columnheader" className={styles.check}>
                  {all}
                </span>
              )}
              {shown.map((column) => (
                <span key={column.id} role="columnheader" className={classes(styles.cell, column.align === "end" && styles.end)}>
                  {column.label}
                </span>
              ))}
            </div>
          </div>
        )}
        <div role="rowgroup" className={styles.body} style={{ height: virtual.getTotalSize() }}>
          {visible.map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            const id = idOf(row);
            return (
              <div
                key={item.key}
                ref={virtual.measureElement}
                data-index={item.index}
                data-row={id}
                role="row"
                aria-rowindex={item.index + 2}
                aria-selected={selection ? selection.ids.has(id) : undefined}
                className={classes(
                  styles.row,
                  styles.data,
                  linkOf && styles.linked,
                  current === id && styles.current,
                  (selection?.ids.has(id) || peeked === id) && styles.selected,
                  toneOf?.(row) === "quiet" && styles.dim,
                )}
                style={{ gridTemplateColumns: isCards ? undefined : tracks, transform: `translateY(${item.start - offset}px)` }}
                onClickCapture={selectsByTouch ? (event) => onCardTouch(event, id) : undefined}
                onClick={(event) => onRowClick(event, row)}
                onFocus={() => setCurrent(id)}
              >
                {selection && (!isCards || selectsByTouch) && (
                  <span role="cell" className={styles.check}>
                    <input
                      type="checkbox"
                      aria-label={text.list.selectRow(nameOf?.(row) ?? id)}
                      checked={selection.ids.has(id)}
                      onChange={(event) => toggle(id, (event.nativeEvent as unknown as KeyboardEvent).shiftKey)}
                    />
                  </span>
                )}
                {shown.map((column) => (
                  <span key={column.id} role="cell" className={classes(styles.cell, column.align === "end" && styles.end)} data-card={isCards ? (column.card ?? "below") : undefined}>
                    {isCards && column.isLabelled && <span className={styles.cardLabel}>{column.label}</span>}
                    {column.cell(row)}
                  </span>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      {isLoading && isEmpty && <Skeleton lines={8} height="1.25rem" />}
      {!isLoading && isEmpty && !error && empty}
      {Boolean(error) && <ErrorNotice error={error} onRetry={onRetry} />}
      {isLoadingMore && <p className={styles.foot}>{text.list.loadingMore}</p>}
    </div>
  );
}

/** The bar that appears at the bottom while rows are selected. */
export function SelectionBar({ selection, children }: { selection: Selection; children: ReactNode }) {
  if (selection.ids.size === 0) return null;
  return (
    <div className={styles.selectionBar} role="region" aria-label={text.list.selected(selection.ids.size)}>
      <span className="number">{text.list.selected(selection.ids.size)}</span>
      <div className={styles.selectionActions}>{children}</div>
      <Button size="small" kind="quiet" className={styles.clear} onClick={() => selection.change(new Set())}>
        {text.list.clearSelection}
      </Button>
    </div>
  );
}

/** "37 new", between the filters and the list. */
export function FreshButton({ count, onShow }: { count: number; onShow: () => void }) {
  return (
    <div className={styles.fresh} aria-live="polite">
      {count > 0 && (
        <button type="button" onClick={onShow}>
          <Icon name="follow" size={14} className={styles.up} />
          {text.list.fresh(count)}
        </button>
      )}
    </div>
  );
}
