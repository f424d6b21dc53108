const VERB = /^(waits?|is|has|was|runs?|did|may|does) /;

/** The summary of an explanation with its subject: "waits for …" is about the run, "key …" has a subject of its own. */
export function withSubject(summary: string): string {
  return VERB.test(summary) ? `it ${summary}` : summary;
}
