import { useEffect, useMemo, useState } from "react";
import { inSteadyOrder } from "~/model/steady";

/** A short list that is asked for as a whole, without jumps: rows keep their places, and new ones wait for a click. */
export function useSteadyList<T>(listKey: string, items: readonly T[] | undefined, idOf: (item: T) => string): { rows: T[]; freshCount: number; showFresh: () => void } {
  const [remembered, setRemembered] = useState<{ listKey: string; order: string[] } | null>(null);
  const order = remembered?.listKey === listKey ? remembered.order : null;
  useEffect(() => {
    // An empty list has nothing that could jump.
    if (items && items.length > 0 && (order === null || !items.some((item) => order.includes(idOf(item))))) setRemembered({ listKey, order: items.map(idOf) });
  }, [items, listKey, order, idOf]);
  const { shown, fresh } = useMemo(() => inSteadyOrder(order, items ?? [], idOf), [order, items, idOf]);
  return { rows: shown, freshCount: fresh.length, showFresh: () => setRemembered({ listKey, order: (items ?? []).map(idOf) }) };
}
