import { describe, expect, it } from "vitest";
import { chunkWindow, findInLines, LogLines } from "./logLines";

function linesOf(...pieces: string[]): LogLines {
  const lines = new LogLines();
  for (const piece of pieces) lines.add(piece);
  return lines;
}

describe("LogLines", () => {
  it("joins pieces at any place to the same lines", () => {
    const whole = "one\ntwo\n\nthree";
    for (let cut = 0; cut <= whole.length; cut += 1) {
      const lines = linesOf(whole.slice(0, cut), whole.slice(cut));
      expect(lines.slice(0, 9)).toEqual(["one", "two", "", "three"]);
    }
    expect(linesOf("a\n", "\n").slice(0, 9)).toEqual(["a", ""]);
    expect(linesOf("").length).toBe(0);
  });
  it("knows the style at the start of any line", () => {
    const lines = linesOf("\u001b[31mred\n", ...Array.from({ length: 350 }, () => "x\n"), "\u001b[0m\n", "plain\n");
    expect(lines.styleBefore(0)).toEqual({});
    expect(lines.styleBefore(1)).toEqual({ color: 1 });
    expect(lines.styleBefore(300)).toEqual({ color: 1 });
    expect(lines.styleBefore(352)).toEqual({});
  });
  it("finds words in lines, without colours between the letters", () => {
    expect(findInLines(linesOf("no\nTime\u001b[1mout\u001b[0m here\ntimeout\n"), "timeout")).toEqual([1, 2]);
  });
});

describe("chunkWindow", () => {
  const height = () => 1000;
  it("takes what is near the view, and as much room as all", () => {
    for (const top of [0, 500, 12_345, 99_000, 1e9]) {
      const { first, last, before, after } = chunkWindow(100, height, top, 600);
      expect(before + after + (last - first + 1) * 1000).toBe(100_000);
      expect(last - first).toBeLessThan(5);
    }
  });
  it("is empty without chunks", () => expect(chunkWindow(0, height, 0, 600)).toEqual({ first: 0, last: -1, before: 0, after: 0 }));
});
