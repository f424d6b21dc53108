/** Terminal colours as spans of text. Every other control sequence is dropped or made visible; nothing is ever markup. */

export interface Style {
  /** 0 to 15, or a CSS colour. */
  color?: number | string;
  background?: number | string;
  isBold?: boolean;
  isDim?: boolean;
  isItalic?: boolean;
  isUnderlined?: boolean;
  isStruck?: boolean;
  isInverse?: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

export const PLAIN: Style = Object.freeze({});

// CSI sequences, OSC sequences (links, titles), and other escapes of two characters.
const SEQUENCE = /\u001b\[([0-9;:<=>?]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -~]?|\u009b[0-9;]*[@-~]/g;

/** The spans of a line, and the style in which the next line begins. */
export function parseAnsi(line: string, start: Style = PLAIN): { spans: Span[]; end: Style } {
  // A progress bar writes over its line: what was written last is seen.
  const text = overwritten(line);
  const spans: Span[] = [];
  let style = start;
  let at = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    if (found.index > at) spans.push({ text: visible(text.slice(at, found.index)), style });
    at = found.index + found[0].length;
    if (found[2] === "m") style = applied(style, found[1] ?? "");
  }
  if (at < text.length) spans.push({ text: visible(text.slice(at)), style });
  return { spans, end: style };
}

export function withoutAnsi(line: string): string {
  return visible(overwritten(line).replace(SEQUENCE, ""));
}

function overwritten(line: string): string {
  const trimmed = line.endsWith("\r") ? line.slice(0, -1) : line;
  const back = trimmed.lastIndexOf("\r");
  return back < 0 ? trimmed : trimmed.slice(back + 1);
}

// Control characters, and the marks that turn the direction of text around.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function visible(text: string): string {
  return text.replace(HIDDEN, (char) => {
    const code = char.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : "\ufffd";
  });
}

function applied(before: Style, parameters: string): Style {
  const codes = parameters.replaceAll(":", ";").split(";").map((code) => Number(code || "0"));
  let style: Style = { ...before };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) style = {};
    else if (code === 1) style.isBold = true;
    else if (code === 2) style.isDim = true;
    else if (code === 3) style.isItalic = true;
    else if (code === 4) style.isUnderlined = true;
    else if (code === 7) style.isInverse = true;
    else if (code === 9) style.isStruck = true;
    else if (code === 22) style.isBold = style.isDim = undefined;
    else if (code === 23) style.isItalic = undefined;
    else if (code === 24) style.isUnderlined = undefined;
    else if (code === 27) style.isInverse = undefined;
    else if (code === 29) style.isStruck = undefined;
    else if (code >= 30 && code <= 37) style.color = code - 30;
    else if (code >= 90 && code <= 97) style.color = code - 82;
    else if (code === 39) style.color = undefined;
    else if (code >= 40 && code <= 47) style.background = code - 40;
    else if (code >= 100 && code <= 107) style.background = code - 92;
    else if (code === 49) style.background = undefined;
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes, at + 1);
      if (code === 38) style.color = color;
      else style.background = color;
      at += used;
    }
  }
  return style;
}

/** `5;n` is one of 256 colours, `2;r;g;b` any. */
function extended(codes: readonly number[], at: number): [number | string | undefined, number] {
  if (codes[at] === 2) {
    const [red, green, blue] = [codes[at + 1], codes[at + 2], codes[at + 3]].map((part) => Math.min(255, Math.max(0, part ?? 0)));
    return [`rgb(${red} ${green} ${blue})`, 4];
  }
  if (codes[at] !== 5) return [undefined, 0];
  const number = codes[at + 1] ?? 0;
  if (number < 16) return [number, 2];
  if (number >= 232) return [`rgb(${(number - 232) * 10 + 8} ${(number - 232) * 10 + 8} ${(number - 232) * 10 + 8})`, 2];
  const level = (part: number) => (part === 0 ? 0 : part * 40 + 55);
  const index = number - 16;
  return [`rgb(${level(Math.floor(index / 36))} ${level(Math.floor(index / 6) % 6)} ${level(index % 6)})`, 2];
}
