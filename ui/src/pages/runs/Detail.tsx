import { Time } from "~/components/Time";

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))/;
const ROUTE = /: (?:POST|PATCH) \/v1\/\S+$/;

/** A sentence of the server, with its instants in the chosen zone, and without hints for programs. */
export function Detail({ words }: { words: string }) {
  return (
    <>
      {words
        .replace(/\.$/, "")
        .replace(ROUTE, "")
        .split(INSTANT)
        .map((part, index) => (index % 2 === 1 ? <Time key={index} at={part} form="absolute" isFocusable /> : part))}
      {words.endsWith(".") && "."}
    </>
  );
}
