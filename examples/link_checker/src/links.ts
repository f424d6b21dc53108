/** Finds and checks links. Knows nothing of Foliot, so its tests need no server. */

export interface Broken {
  link: string;
  why: string;
}

/** The pages that a page links to, without repetitions and without what is not HTTP. */
export function linksOf(html: string, page: string): string[] {
  const found = new Set<string>();
  for (const [, address] of html.matchAll(/<a\s[^>]*?href="([^"]*)"/g)) {
    const link = parsed(address ?? "", page);
    if (link === undefined || !link.protocol.startsWith("http")) continue;
    link.hash = "";
    found.add(link.href);
  }
  return [...found];
}

function parsed(address: string, base: string): URL | undefined {
  try {
    return new URL(address, base);
  } catch {
    return undefined;
  }
}

/** Undefined if the link works. */
export async function brokenness(link: string, signal: AbortSignal): Promise<Broken | undefined> {
  try {
    const answer = await fetch(link, { method: "HEAD", signal });
    return answer.ok ? undefined : { link, why: `${answer.status} ${answer.statusText}` };
  } catch (error) {
    // The attempt must stop: that says nothing about the link.
    if (signal.aborted) throw error;
    return { link, why: error instanceof Error ? error.message : String(error) };
  }
}
