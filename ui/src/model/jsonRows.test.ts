import { describe, expect, it } from "vitest";
import { flatten, pathsThatMatch } from "./jsonRows";

const VALUE = { order: { lines: [{ sku: "A-1" }, { sku: "B-2" }] }, note: null, many: Array.from({ length: 200 }, (_, index) => index) };
const shown = (...parameters: Parameters<typeof flatten>) => flatten(...parameters).map((row) => `${row.kind} ${row.path}`);

describe("flatten", () => {
  it("closes what is deep or large, and opens what is toggled", () => {
    const first = shown(VALUE, new Map(), null);
    expect(first).toContain("value /note");
    expect(first).toContain("open /order/lines/0");
    expect(first).not.toContain("value /order/lines/0/sku");
    expect(first).not.toContain("value /many/0");
    expect(shown(VALUE, new Map([["/many", true]]), null)).toContain("value /many/199");
    expect(shown(VALUE, new Map([["", false]]), null)).toEqual(["open "]);
  });
  it("opens the way to a match, however deep", () => {
    const found = pathsThatMatch(VALUE, "b-2");
    expect(found.count).toBe(1);
    expect(shown(VALUE, new Map(), found)).toContain("value /order/lines/1/sku");
    expect(pathsThatMatch(VALUE, "SKU").count).toBe(2);
    expect(pathsThatMatch(VALUE, "null").count).toBe(1);
  });
  it.each([null, 7, "text", [], {}])("takes %s", (value) => expect(flatten(value, new Map(), null)).toHaveLength(1));
});
