/** The filter language: `state:failed,lost -tag:test since:2h free text`. Pure, and the same for typing and clicking. */

export interface FilterKey {
  name: string;
  /** Shown beside it while completing. */
  hint: string;
  /** Whether several values, separated by commas, may be given. */
  isMany?: boolean;
  /** Whether `-key:value` is understood. */
  isNegatable?: boolean;
  /** Says what is wrong with a value; null if nothing is. */
  check?: (value: string) => string | null;
  /** Whether `key.path:value` is understood, as for payload. */
  hasPath?: boolean;
}

export interface Term {
  /** Empty for free text. */
  key: string;
  /** The path after the key, as in `payload.customer_id:7`. */
  path: string;
  values: string[];
  isNegated: boolean;
  /** The place in the text. */
  start: number;
  end: number;
  error: string | null;
}

export interface FilterMessages {
  unknownKey: (key: string, nearest: string | null) => string;
  noValue: (key: string) => string;
  notNegatable: (key: string) => string;
  twice: (key: string) => string;
}

export function parseFilter(source: string, keys: readonly FilterKey[], messages: FilterMessages): Term[] {
  const terms: Term[] = [];
  const seen = new Set<string>();
  let at = 0;
  while (at < source.length) {
    if (/\s/.test(source[at] ?? "")) {
      at += 1;
      continue;
    }
    const end = wordEnd(source, at);
    terms.push(termOf(source.slice(at, end), at, end, keys, messages, seen));
    at = end;
  }
  return terms;
}

/** Quoted parts may contain spaces. */
function wordEnd(source: string, start: number): number {
  let isQuoted = false;
  for (let at = start; at < source.length; at += 1) {
    const char = source[at] ?? "";
    if (isQuoted && char === "\\") at += 1;
    else if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /\s/.test(char)) return at;
  }
  return source.length;
}

function termOf(word: string, start: number, end: number, keys: readonly FilterKey[], messages: FilterMessages, seen: Set<string>): Term {
  const isNegated = word.startsWith("-") && word.length > 1;
  const bare = isNegated ? word.slice(1) : word;
  const colon = colonOf(bare);
  const term: Term = { key: "", path: "", values: [], isNegated: false, start, end, error: null };
  const written = bare.slice(0, colon);
  // A colon inside free text, as in a URL or a time, makes no key.
  if (colon <= 0 || !/^[a-z_]+(\.[^\s":]+)?$/i.test(written) || bare.startsWith("//", colon + 1)) {
    term.values = [unquoted(word)];
    return term;
  }
  const dot = written.indexOf(".");
  term.key = (dot < 0 ? written : written.slice(0, dot)).toLowerCase();
  term.path = dot < 0 ? "" : written.slice(dot + 1);
  term.isNegated = isNegated;
  const known = keys.find((one) => one.name === term.key && (term.path === "" || one.hasPath));
  const value = bare.slice(colon + 1);
  term.values = known?.isMany ? splitValues(value) : value === "" ? [] : [unquoted(value)];
  if (!known) term.error = messages.unknownKey(written, nearest(term.key, keys.map((one) => one.name)));
  else if (term.values.length === 0) term.error = messages.noValue(written);
  else if (isNegated && !known.isNegatable) term.error = messages.notNegatable(term.key);
  else if (seen.has(`${isNegated}${written}`)) term.error = messages.twice(written);
  else for (const one of term.values) term.error ??= known.check?.(one) ?? null;
  seen.add(`${isNegated}${written}`);
  return term;
}

function colonOf(word: string): number {
  return word.startsWith('"') ? -1 : word.indexOf(":");
}

function splitValues(value: string): string[] {
  const parts: string[] = [];
  let part = "";
  let isQuoted = false;
  for (let at = 0; at < value.length; at += 1) {
    const char = value[at] ?? "";
    if (isQuoted && char === "\\") {
      part += char + (value[at + 1] ?? "");
      at += 1;
      continue;
    }
    if (char === '"') isQuoted = !isQuoted;
    if (char === "," && !isQuoted) {
      parts.push(part);
      part = "";
    } else part += char;
  }
  parts.push(part);
  return parts.map(unquoted).filter((one) => one !== "");
}

function unquoted(text: string): string {
  if (!text.includes('"')) return text;
  return text.replace(/"((?:[^"\\]|\\.)*)"?/g, (_all, inner: string) => inner.replace(/\\(.)/g, "$1"));
}

/** As it is written: with quotes where it needs them. */
export function quoted(value: string, isMany = false): string {
  const isPlain = isMany ? /^[^\s",\\]+$/ : /^[^\s"\\]+$/;
  return isPlain.test(value) ? value : `"${value.replace(/(["\\])/g, "\\$1")}"`;
}

export function termText(term: Pick<Term, "key" | "values"> & Partial<Term>): string {
  if (term.key === "") {
    const text = term.values[0] ?? "";
    // A word that would be read as a key must be quoted.
    return /^-?[a-z_]+(\.[^\s":]+)?:/i.test(text) ? `"${text.replace(/(["\\])/g, "\\$1")}"` : quoted(text);
  }
  const isMany = term.values.length > 1;
  const values = term.values.map((value) => quoted(value, isMany || value.includes(","))).join(",");
  return `${term.isNegated ? "-" : ""}${term.key}${term.path ? `.${term.path}` : ""}:${values}`;
}

export function filterText(terms: readonly (Pick<Term, "key" | "values"> & Partial<Term>)[]): string {
  return terms.map(termText).join(" ");
}

/** The text with this key set to these values; without values, the key goes. Everything else stays as it is written. */
export function withTerm(source: string, key: string, values: readonly string[], keys: readonly FilterKey[]): string {
  const terms = parseFilter(source, keys, SILENT);
  const found = terms.find((term) => term.key === key && !term.isNegated && term.path === "");
  const written = values.length > 0 ? termText({ key, values: [...values] }) : "";
  if (!found) return [source.trim(), written].filter(Boolean).join(" ");
  return [source.slice(0, found.start).trim(), written, source.slice(found.end).trim()].filter(Boolean).join(" ");
}

export function withoutTerm(source: string, term: Term): string {
  return [source.slice(0, term.start).trim(), source.slice(term.end).trim()].filter(Boolean).join(" ");
}

export function valuesOf(terms: readonly Term[], key: string): string[] {
  return terms.filter((term) => term.key === key && !term.isNegated && term.path === "" && !term.error).flatMap((term) => term.values);
}

/** The free text of all terms together. */
export function freeText(terms: readonly Term[]): string {
  return terms.filter((term) => term.key === "").map((term) => term.values[0] ?? "").join(" ");
}

const SILENT: FilterMessages = { unknownKey: () => "", noValue: () => "", notNegatable: () => "", twice: () => "" };

/** The nearest of some words, if one is near. */
export function nearest(word: string, words: readonly string[]): string | null {
  let best: string | null = null;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const one of words) {
    const distance = one.startsWith(word) && word.length > 1 ? 1 : editDistance(word, one);
    if (distance < least) [best, least] = [one, distance];
  }
  return best;
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1)
      next.push(Math.min((next[j - 1] ?? 0) + 1, (row[j] ?? 0) + 1, (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[right.length] ?? 0;
}
