import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLiveRefresh } from "./useLiveRefresh";

export interface Page<T> {
  items: T[];
  next: string | null;
}

interface Properties<T> {
  /** A change of it starts the list anew. */
  listKey: string;
  fetchPage: (after: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
  idOf: (item: T) => string;
  isLive?: boolean;
  /** Milliseconds between two refreshes. */
  every?: number;
  isOn?: boolean;
}

interface Loaded<T> {
  after: string | undefined;
  items: T[];
  next: string | null;
}

/** More rows than this are let go from the top of memory, and fetched again when somebody scrolls back. */
const ROWS_MAX = 20_000;

export interface KeysetList<T> {
  items: T[];
  isLoading: boolean;
  isLoadingMore: boolean;
  hasMore: boolean;
  error: unknown;
  /** Rows that have come since, and wait. */
  freshCount: number;
  showFresh: () => void;
  loadMore: () => void;
  reload: () => void;
  /** Changes rows that are shown, at once. */
  patch: (change: (item: T) => T) => void;
  /** Tells which rows are in view, so that only their pages are refreshed. */
  setVisible: (first: number, last: number) => void;
}

/** A long list in keyset pages. It never jumps: rows in view change in place, and new ones wait behind "37 new". */
export function useKeysetList<T>({ listKey, fetchPage, idOf, isLive = true, every = 1_000, isOn = true }: Properties<T>): KeysetList<T> {
  const [pages, setPages] = useState<Loaded<T>[]>([]);
  const [fresh, setFresh] = useState<T[]>([]);
  const [status, setStatus] = useState<"loading" | "more" | "ready">("loading");
  const [error, setError] = useState<unknown>(null);
  const state = useRef({ pages, generation: 0, isBusy: false, visible: [0, 50] as [number, number] });
  state.current.pages = pages;
  const asking = useRef<AbortController | null>(null);
  const latest = useRef({ fetchPage, idOf });
  latest.current = { fetchPage, idOf };

  const start = useCallback(async (keep: boolean) => {
    asking.current?.abort();
    const mine = new AbortController();
    asking.current = mine;
    const generation = ++state.current.generation;
    if (!keep) {
      setStatus("loading");
      setPages([]);
    }
    setError(null);
    try {
      const page = await latest.current.fetchPage(undefined, mine.signal);
      if (generation !== state.current.generation) return;
      setPages([{ after: undefined, ...page }]);
      setFresh([]);
    } catch (problem) {
      if (generation !== state.current.generation || mine.signal.aborted) return;
      setError(problem);
    }
    setStatus("ready");
  }, []);

  useEffect(() => {
    if (isOn) void start(false);
    return () => asking.current?.abort();
  }, [listKey, isOn, start]);

  const loadMore = useCallback(async () => {
    const last = state.current.pages.at(-1);
    if (!last?.next || state.current.isBusy) return;
    state.current.isBusy = true;
    setStatus("more");
    const generation = state.current.generation;
    try {
      const page = await latest.current.fetchPage(last.next, new AbortController().signal);
      if (generation !== state.current.generation) return;
      const count = state.current.pages.reduce((sum, one) => sum + one.items.length, 0);
      if (count < ROWS_MAX) setPages((before) => [...before, { after: last.next ?? undefined, ...page }]);
      setError(null);
    } catch (problem) {
      if (generation === state.current.generation) setError(problem);
    } finally {
      state.current.isBusy = false;
      setStatus("ready");
    }
  }, []);

  const refresh = useCallback(async () => {
    if (state.current.isBusy || state.current.pages.length === 0) return;
    state.current.isBusy = true;
    const generation = state.current.generation;
    const { pages: shown, visible } = state.current;
    try {
      let first = 0;
      const wanted = shown.filter((page, index) => {
        const from = first;
        first += page.items.length;
        return index === 0 || (from <= visible[1] && first >= visible[0]);
      });
      const found = await Promise.all(wanted.map(async (page) => ({ page, news: await latest.current.fetchPage(page.after, new AbortController().signal) })));
      if (generation !== state.current.generation) return;
      const { idOf: id } = latest.current;
      const known = new Set(state.current.pages.flatMap((page) => page.items.map(id)));
      const news = new Map(found.flatMap(({ news: page }) => page.items.map((item) => [id(item), item] as const)));
      const isEmpty = known.size === 0;
      if (isEmpty) setPages(found.slice(0, 1).map(({ news: page }) => ({ after: undefined, ...page })));
      else {
        setPages((before) => before.map((page) => (page.items.some((item) => news.has(id(item))) ? { ...page, items: page.items.map((item) => news.get(id(item)) ?? item) } : page)));
        setFresh((found[0]?.news.items ?? []).filter((item) => !known.has(id(item))));
      }
      setError(null);
    } catch (problem) {
      if (generation === state.current.generation && state.current.pages.every((page) => page.items.length === 0)) setError(problem);
    } finally {
      state.current.isBusy = false;
    }
  }, []);

  useLiveRefresh(() => void (state.current.pages.length === 0 ? start(true) : refresh()), { every, isOn: isOn && isLive });

  const showFresh = useCallback(() => {
    window.scrollTo({ top: 0 });
    void start(true);
  }, [start]);

  const patch = useCallback((change: (item: T) => T) => {
    setPages((before) => before.map((page) => ({ ...page, items: page.items.map(change) })));
  }, []);

  const items = useMemo(() => pages.flatMap((page) => page.items), [pages]);
  return {
    items,
    isLoading: status === "loading",
    isLoadingMore: status === "more",
    hasMore: Boolean(pages.at(-1)?.next) && items.length < ROWS_MAX,
    error,
    freshCount: fresh.length,
    showFresh,
    loadMore,
    reload: () => void start(true),
    patch,
    setVisible: useCallback((first: number, last: number) => {
      state.current.visible = [first, last];
    }, []),
  };
}
