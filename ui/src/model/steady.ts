/** Items in the order in which they were first shown. New ones are kept apart, so that a live list never jumps. */
export function inSteadyOrder<T>(order: readonly string[] | null, items: readonly T[], idOf: (item: T) => string): { shown: T[]; fresh: T[] } {
  if (order === null) return { shown: [...items], fresh: [] };
  const byId = new Map(items.map((item) => [idOf(item), item]));
  const known = new Set(order);
  return {
    shown: order.flatMap((id) => byId.get(id) ?? []),
    fresh: items.filter((item) => !known.has(idOf(item))),
  };
}
