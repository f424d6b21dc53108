/** The namespace of the page's URL (`ns`), which every request names. Without it, the caller's own applies. */
let current: string | undefined;

export function setNamespace(name: string | undefined): void {
  current = name;
}

export function currentNamespace(): string | undefined {
  return current;
}
