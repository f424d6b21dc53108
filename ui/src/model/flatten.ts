const PARTS_MAX = 500;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const shown = (value: unknown): string => (typeof value === "string" ? value : Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join("\n") : JSON.stringify(value));

/** The values of an object by their place, such as "customer.id". What has none is left out; beyond 500 places, parts stay whole. */
export function flatten(value: unknown, path = "", into = new Map<string, string>()): Map<string, string> {
  if (isObject(value) && into.size < PARTS_MAX) for (const [name, inner] of Object.entries(value)) flatten(inner, path ? `${path}.${name}` : name, into);
  else if (value !== null && value !== undefined && path) into.set(path, shown(value));
  return into;
}
