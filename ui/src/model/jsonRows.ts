export interface JsonRow {
  kind: "open" | "close" | "value";
  path: string;
  /** The key in its object; null in an array. */
  name: string | null;
  depth: number;
  value: unknown;
  size: number;
  isArray: boolean;
  isOpen: boolean;
}

interface Found {
  /** The paths of everything that contains a match. */
  around: ReadonlySet<string>;
  count: number;
}

const OPEN_DEPTH = 3;
const OPEN_SIZE = 100;
const ROWS_MAX = 20_000;

/** A JSON value as rows of a tree. What is deep or large is closed at first; what contains a match is open. */
export function flatten(value: unknown, toggled: ReadonlyMap<string, boolean>, found: Found | null): JsonRow[] {
  const rows: JsonRow[] = [];
  const visit = (one: unknown, path: string, name: string | null, depth: number) => {
    if (rows.length > ROWS_MAX) return;
    const isTree = typeof one === "object" && one !== null && Object.keys(one).length > 0;
    const row = { path, name, depth, value: one, size: 0, isArray: Array.isArray(one), isOpen: false };
    if (!isTree) {
      rows.push({ ...row, kind: "value" });
      return;
    }
    const entries = Object.entries(one as object);
    const isOpen = toggled.get(path) ?? (found ? found.around.has(path) || depth < 1 : depth < OPEN_DEPTH && (entries.length <= OPEN_SIZE || depth === 0));
    rows.push({ ...row, kind: "open", size: entries.length, isOpen });
    if (!isOpen) return;
    for (const [key, inner] of entries) visit(inner, `${path}/${key}`, row.isArray ? null : key, depth + 1);
    rows.push({ ...row, kind: "close" });
  };
  visit(value, "", null, 0);
  return rows;
}

/** Where the words occur in names and values. */
export function pathsThatMatch(value: unknown, words: string): Found {
  const wanted = words.toLowerCase();
  const around = new Set<string>();
  let count = 0;
  const visit = (one: unknown, path: string, name: string, parents: readonly string[]) => {
    const isTree = typeof one === "object" && one !== null;
    const isHit = name.toLowerCase().includes(wanted) || (!isTree && String(one).toLowerCase().includes(wanted));
    if (isHit) {
      count += 1;
      for (const parent of parents) around.add(parent);
    }
    if (isTree) for (const [key, inner] of Object.entries(one)) visit(inner, `${path}/${key}`, Array.isArray(one) ? "" : key, [...parents, path]);
  };
  visit(value, "", "", []);
  return { around, count };
}
