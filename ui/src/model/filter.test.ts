import { describe, expect, it } from "vitest";
import { type FilterKey, filterText, freeText, nearest, parseFilter, quoted, termText, valuesOf, withoutTerm, withTerm } from "./filter";

const KEYS: FilterKey[] = [
  { name: "state", hint: "", isMany: true, isNegatable: true, check: (value) => (["failed", "held", "running"].includes(value) ? null : `no state ${value}`) },
  { name: "queue", hint: "" },
  { name: "tag", hint: "", isNegatable: true },
  { name: "error", hint: "" },
  { name: "payload", hint: "", hasPath: true },
  { name: "since", hint: "" },
];
const MESSAGES = {
  unknownKey: (key: string, near: string | null) => `unknown ${key}, near ${near}`,
  noValue: (key: string) => `no value ${key}`,
  notNegatable: (key: string) => `not negatable ${key}`,
  twice: (key: string) => `twice ${key}`,
};
const parse = (text: string) => parseFilter(text, KEYS, MESSAGES);

describe("parseFilter", () => {
  it("reads keys, several values, negation, paths, quotes and free text", () => {
    const terms = parse('state:failed,held -tag:test error:"timed out" payload.customer_id:7 card "was declined"');
    expect(terms.map((term) => [term.key, term.path, term.isNegated, term.values])).toEqual([
      ["state", "", false, ["failed", "held"]],
      ["tag", "", true, ["test"]],
      ["error", "", false, ["timed out"]],
      ["payload", "customer_id", false, ["7"]],
      ["", "", false, ["card"]],
      ["", "", false, ["was declined"]],
    ]);
    expect(terms.every((term) => term.error === null)).toBe(true);
    expect(freeText(terms)).toBe("card was declined");
    expect(valuesOf(terms, "state")).toEqual(["failed", "held"]);
    expect(valuesOf(terms, "tag")).toEqual([]);
  });

  it.each([
    ["stat:failed", "unknown stat, near state"],
    ["zzzzzz:1", "unknown zzzzzz, near null"],
    ["queue.mail:1", "unknown queue.mail, near queue"],
    ["state:", "no value state"],
    ["state:,", "no value state"],
    ["-queue:mail", "not negatable queue"],
    ["state:lost", "no state lost"],
    ["state:failed,lost", "no state lost"],
    ["queue:a queue:b", "twice queue"],
  ])("says what is wrong with %s", (text, error) => {
    expect(parse(text).find((term) => term.error)?.error).toBe(error);
  });

  it.each(["https://example.com:8080/x", "12:30", "a:b:c//", "-", ":", "::", "-:x", '"state:failed"'])("takes %s as free text or a clean error", (text) => {
    const terms = parse(text);
    expect(terms.length).toBe(1);
    expect(terms[0]?.start).toBe(0);
    expect(terms[0]?.end).toBe(text.length);
  });

  it("keeps the place of each term, and never fails, whatever is typed", () => {
    const wrong: string[] = [];
    let seed = 7;
    const random = (most: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % most;
    };
    const pieces = ["state", ":", "failed", ",", '"', "\\", " ", "-", "tag", ".", "x", "\u202e", "é", "\t", "payload.a", "//"];
    for (let turn = 0; turn < 5_000; turn += 1) {
      const text = Array.from({ length: random(12) }, () => pieces[random(pieces.length)]).join("");
      const terms = parse(text);
      let at = 0;
      for (const term of terms) {
        if (text.slice(at, term.start).trim() !== "" || term.end <= term.start) wrong.push(text);
        at = term.end;
      }
      if (text.slice(at).trim() !== "") wrong.push(text);
      const good = terms.filter((term) => !term.error && term.values.some((value) => value !== ""));
      if (JSON.stringify(parse(filterText(good)).map(shape)) !== JSON.stringify(good.map(shape))) wrong.push(text);
    }
    expect(wrong).toEqual([]);
  });
});

function shape(term: { key: string; path: string; values: string[]; isNegated: boolean }) {
  return [term.key, term.path, term.values.filter((value) => value !== ""), term.isNegated];
}

describe("writing", () => {
  it("quotes what needs it", () => {
    expect(quoted("plain")).toBe("plain");
    expect(quoted('a "b" \\')).toBe('"a \\"b\\" \\\\"');
    expect(termText({ key: "state", values: ["a,b", "c"] })).toBe('state:"a,b",c');
    expect(termText({ key: "", values: ["state:failed"] })).toBe('"state:failed"');
  });

  it("sets, replaces and removes one term, and leaves the rest as it is written", () => {
    expect(withTerm("", "queue", ["mail"], KEYS)).toBe("queue:mail");
    expect(withTerm("state:failed  hello", "state", ["held"], KEYS)).toBe("state:held hello");
    expect(withTerm("state:failed hello", "state", [], KEYS)).toBe("hello");
    expect(withTerm("-tag:x", "tag", ["y"], KEYS)).toBe("-tag:x tag:y");
    const terms = parse("a state:failed b");
    expect(withoutTerm("a state:failed b", terms[1]!)).toBe("a b");
  });

  it("finds the nearest word", () => {
    expect(nearest("qeue", ["queue", "state"])).toBe("queue");
    expect(nearest("sin", ["since", "state"])).toBe("since");
    expect(nearest("xyzzy", ["queue", "state"])).toBe(null);
  });
});
