import { parseAnsi, PLAIN, type Style, withoutAnsi } from "./ansi";

/** The lines of an output that may still grow. Pieces arrive in any size, also in the middle of a line. */
export class LogLines {
  private lines: string[] = [];
  private isOpen = false;
  /** The style at the start of every hundredth line, as far as it has been read. */
  private readonly marks: Style[] = [PLAIN];
  /** Grows with every piece. */
  version = 0;

  get length(): number {
    return this.lines.length;
  }

  add(piece: string): void {
    if (piece === "") return;
    this.version += 1;
    const parts = piece.split("\n");
    if (this.isOpen) this.lines[this.lines.length - 1] += parts.shift() ?? "";
    const last = parts.pop();
    for (const part of parts) this.lines.push(part);
    if (last === undefined) return;
    this.isOpen = last !== "";
    if (this.isOpen) this.lines.push(last);
  }

  slice(from: number, to: number): string[] {
    return this.lines.slice(from, to);
  }

  line(index: number): string {
    return this.lines[index] ?? "";
  }

  /** The style in which a line begins: the one before it may not have ended its colour. */
  styleBefore(index: number): Style {
    const step = 100;
    while (this.marks.length * step <= index) {
      let style = this.marks.at(-1) ?? PLAIN;
      const from = (this.marks.length - 1) * step;
      for (let at = from; at < from + step; at += 1) style = endOf(this.line(at), style);
      this.marks.push(style);
    }
    const mark = Math.floor(index / step);
    let style = this.marks[mark] ?? PLAIN;
    for (let at = mark * step; at < index; at += 1) style = endOf(this.line(at), style);
    return style;
  }
}

function endOf(line: string, style: Style): Style {
  return line.includes("\u001b[") ? parseAnsi(line.slice(-4_000), style).end : style;
}

const MATCHES_MAX = 10_000;

/** The lines that contain the words, upper or lower case. */
export function findInLines(lines: LogLines, words: string): number[] {
  const wanted = words.toLowerCase();
  const found: number[] = [];
  for (let index = 0; index < lines.length && found.length < MATCHES_MAX; index += 1) {
    const line = lines.line(index);
    const text = line.includes("\u001b") ? withoutAnsi(line) : line;
    if (text.toLowerCase().includes(wanted)) found.push(index);
  }
  return found;
}

/** Which chunks to draw for a view, and how much room the others take. */
export function chunkWindow(count: number, heightOf: (chunk: number) => number, top: number, height: number): { first: number; last: number; before: number; after: number } {
  const margin = Math.max(height, 400);
  let sum = 0;
  let first = -1;
  let last = -1;
  let before = 0;
  let after = 0;
  for (let chunk = 0; chunk < count; chunk += 1) {
    const tall = heightOf(chunk);
    const isNear = sum + tall >= top - margin && sum <= top + height + margin;
    if (isNear) {
      if (first < 0) {
        first = chunk;
        before = sum;
      }
      last = chunk;
    } else if (first >= 0) after += tall;
    sum += tall;
  }
  // Scrolled past the end, as when lines have gone: the last chunk is shown.
  if (first < 0 && count > 0) return { first: count - 1, last: count - 1, before: sum - heightOf(count - 1), after: 0 };
  return { first: Math.max(0, first), last, before, after };
}
