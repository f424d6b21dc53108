import { expect, test } from "vitest";
import { inSteadyOrder } from "./steady";

const idOf = (item: { id: string }) => item.id;
const items = (...ids: string[]) => ids.map((id) => ({ id }));

test("the first items are shown as they come", () => {
  expect(inSteadyOrder(null, items("b", "a"), idOf)).toEqual({ shown: items("b", "a"), fresh: [] });
});

test("later the order stays, new items wait, and gone ones go", () => {
  const { shown, fresh } = inSteadyOrder(["a", "b", "c"], items("new", "c", "a"), idOf);
  expect(shown).toEqual(items("a", "c"));
  expect(fresh).toEqual(items("new"));
});
