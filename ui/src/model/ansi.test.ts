import { describe, expect, it } from "vitest";
import { parseAnsi, withoutAnsi } from "./ansi";

const ESC = "\u001b";

describe("parseAnsi", () => {
  it("gives colours and weights to spans, and ends them", () => {
    expect(parseAnsi(`a${ESC}[31;1mred${ESC}[0m b`).spans).toEqual([
      { text: "a", style: {} },
      { text: "red", style: { color: 1, isBold: true } },
      { text: " b", style: {} },
    ]);
  });
  it("carries a style on to the next line", () => {
    const { end } = parseAnsi(`${ESC}[38;5;196mhot`);
    expect(parseAnsi("still", end).spans[0]?.style.color).toBe("rgb(255 0 0)");
  });
  it.each([
    ["90;100", { color: 8, background: 8 }],
    ["38;2;1;2;999", { color: "rgb(1 2 255)" }],
    ["48;5;232", { background: "rgb(8 8 8)" }],
    ["38;5", { color: 0 }],
    ["38", { color: undefined }],
  ])("reads %s", (code, style) => expect(parseAnsi(`${ESC}[${code}mx`).spans[0]?.style).toEqual(style));
  it("shows what was written last over a line", () => {
    expect(withoutAnsi("10%\r50%\r100%\r")).toBe("100%");
  });
  it("drops links, titles and cursor movements, and makes control characters and turned text visible", () => {
    expect(withoutAnsi(`${ESC}]8;;https://evil.example${ESC}\\click${ESC}]8;;\u0007${ESC}[2J${ESC}[1;1H!`)).toBe("click!");
    expect(withoutAnsi("a\u0000b\u0008c\u007f")).toBe("a␀b␈c␡");
    expect(withoutAnsi("user\u202etxt.exe")).toBe("user\ufffdtxt.exe");
  });
  it("takes a line of a megabyte of unfinished sequences", () => {
    expect(parseAnsi(`${ESC}[`.repeat(200_000)).spans.length).toBeGreaterThanOrEqual(0);
    expect(withoutAnsi(`${ESC}]`.repeat(200_000)).length).toBeLessThan(400_001);
  });
});
