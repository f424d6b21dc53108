/** Search parameters are plain texts, so that URLs stay readable: `?q=state:failed`, not `?q=%22state...`. */
export type Search = Record<string, string | undefined>;

export function parseSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search))
    if (value !== undefined && value !== null && value !== "" && value !== false) parameters.set(name, String(value));
  // These are legal in a query, and easier to read.
  const text = parameters.toString().replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text ? `?${text}` : "";
}

/** Keeps only the named parameters of a page, as texts. */
export function keeps<Name extends string>(...names: Name[]): (search: Record<string, unknown>) => { [N in Name]?: string } {
  return (search) => {
    const kept: { [N in Name]?: string } = {};
    for (const name of names) {
      const value = search[name];
      if (typeof value === "string" && value !== "") kept[name] = value;
    }
    return kept;
  };
}
