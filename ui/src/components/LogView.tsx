import { type ReactNode, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { parseAnsi, PLAIN, type Span, type Style, withoutAnsi } from "~/model/ansi";
import { chunkWindow, findInLines, type LogLines } from "~/model/logLines";
import { bytes } from "~/model/numbers";
import { prefer, usePreferences } from "~/model/preferences";
import { text } from "~/texts/en";
import { Button, IconButton } from "./Button";
import { classes } from "./classes";
import { Icon } from "./Icon";
import styles from "./LogView.module.css";

interface Properties {
  lines: LogLines;
  /** Whether more is to come. */
  isLive?: boolean;
  downloadUrl?: string;
  downloadName?: string;
  tools?: ReactNode;
  line?: number | null;
  onLine?: (line: number) => void;
  empty?: ReactNode;
}

const CHUNK = 200;
const LINE_HEIGHT = 20;
const SHOWN_MAX = 4_000;

/** Output: windowed, coloured, searchable, following the end. Only chunks near the view are in the page. */
export function LogView({ lines, isLive, downloadUrl, downloadName, tools, line = null, onLine, empty }: Properties) {
  const { wrapLogs } = usePreferences();
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<number, number>());
  const [view, setView] = useState({ top: 0, height: 600 });
  const [isFollowing, setFollowing] = useState(line === null);
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const count = lines.length;
  const version = lines.version;
  const matches = useMemo(() => (words.length > 0 ? findInLines(lines, words) : []), [lines, version, words]);
  const current = matches[Math.min(at, matches.length - 1)];
  const chunkCount = Math.ceil(count / CHUNK);
  const heightOf = useCallback(
    (chunk: number) => heights.current.get(chunk) ?? LINE_HEIGHT * Math.min(CHUNK, count - chunk * CHUNK),
    [count],
  );
  const shown = chunkWindow(chunkCount, heightOf, view.top, view.height);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [count === 0]);
  useLayoutEffect(() => {
    heights.current.clear();
  }, [wrapLogs]);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && isFollowing) element.scrollTop = element.scrollHeight;
  }, [version, count, isFollowing, wrapLogs, view.height, shown.last]);

  const goTo = useCallback(
    (target: number) => {
      const element = box.current;
      if (!element) return;
      setFollowing(false);
      const chunk = Math.floor(target / CHUNK);
      let top = 0;
      for (let index = 0; index < chunk; index += 1) top += heightOf(index);
      element.scrollTop = Math.max(0, top + (target % CHUNK) * LINE_HEIGHT - element.clientHeight / 3);
      requestAnimationFrame(() => element.querySelector(`[data-line="${target + 1}"]`)?.scrollIntoView({ block: "center" }));
    },
    [heightOf],
  );
  useEffect(() => {
    if (current !== undefined) goTo(current);
  }, [current, goTo]);
  useEffect(() => {
    if (line !== null && count >= line) goTo(line - 1);
  }, [line, count > 0]);

  const onScroll = () => {
    const element = box.current;
    if (!element) return;
    setView({ top: element.scrollTop, height: element.clientHeight });
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < LINE_HEIGHT;
    if (isAtEnd !== isFollowing) setFollowing(isAtEnd);
  };
  const step = (by: number) => setAt((before) => (matches.length === 0 ? 0 : (Math.min(before, matches.length - 1) + by + matches.length) % matches.length));

  return (
    <section className={classes(styles.log, isLive && styles.growing)} aria-label={text.log.label}>
      <div className={styles.tools}>
        {tools}
        <div className={styles.search}>
          <Icon name="search" size={14} />
          <input
            type="search"
            aria-label={text.log.search}
            placeholder={text.log.search}
            value={words}
            onChange={(event) => {
              setWords(event.target.value);
              setAt(0);
            }}
            onKeyDown={(event) => {
              if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
              if (event.key === "Escape") setWords("");
            }}
          />
          {words && (
            <>
              <span className={styles.matches} role="status">
                {text.log.matches(Math.min(at, matches.length - 1) + 1, matches.length)}
              </span>
              <IconButton icon="chevron" label={text.log.previous} size="small" className={styles.up} onClick={() => step(-1)} />
              <IconButton icon="chevron" label={text.log.next} size="small" className={styles.down} onClick={() => step(1)} />
            </>
          )}
        </div>
        <span className={styles.count}>{text.log.lines(count)}</span>
        {isLive && (
          <Button kind="quiet" size="small" icon="follow" aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>
            {text.log.follow}
          </Button>
        )}
        <IconButton icon="wrap" label={text.log.wrap} size="small" aria-pressed={wrapLogs} onClick={() => prefer({ wrapLogs: !wrapLogs })} />
        {downloadUrl && (
          <a href={downloadUrl} download={downloadName} aria-label={text.log.download} title={text.log.download} className={styles.download}>
            <Icon name="download" size={16} />
          </a>
        )}
      </div>
      {count === 0 ? (
        <div className={styles.empty}>{empty}</div>
      ) : (
        <div ref={box} className={classes(styles.lines, wrapLogs && styles.wrapped)} onScroll={onScroll} tabIndex={0} role="log" aria-live="off" aria-label={text.log.label}>
          <div style={{ height: shown.before }} />
          {Array.from({ length: shown.last - shown.first + 1 }, (_, index) => shown.first + index).map((chunk) => (
            <Chunk
              key={chunk}
              chunk={chunk}
              lines={lines}
              version={chunk === chunkCount - 1 ? version : 0}
              words={words}
              current={current ?? (line === null ? -1 : line - 1)}
              onLine={onLine}
              onHeight={(height) => heights.current.set(chunk, height)}
            />
          ))}
          <div style={{ height: shown.after }} />
        </div>
      )}
    </section>
  );
}

interface ChunkProperties {
  chunk: number;
  lines: LogLines;
  version: number;
  words: string;
  current: number;
  onLine?: (line: number) => void;
  onHeight: (height: number) => void;
}

function Chunk({ chunk, lines, version, words, current, onLine, onHeight }: ChunkProperties) {
  const element = useRef<HTMLDivElement>(null);
  const first = chunk * CHUNK;
  const parsed = useMemo(() => {
    let style = lines.styleBefore(first);
    return lines.slice(first, first + CHUNK).map((line) => {
      const { spans, end } = parseAnsi(line.length > SHOWN_MAX ? line.slice(0, SHOWN_MAX) : line, style);
      style = end;
      return { spans, rest: Math.max(0, line.length - SHOWN_MAX) };
    });
  }, [lines, first, version]);
  useLayoutEffect(() => {
    if (element.current) onHeight(element.current.offsetHeight);
  });
  return (
    <div ref={element}>
      {parsed.map(({ spans, rest }, index) => (
        <div key={index} data-line={first + index + 1} className={classes(styles.line, first + index === current && styles.current)}>
          <button type="button" tabIndex={-1} className={styles.number} data-number={first + index + 1} aria-hidden="true" onClick={() => onLine?.(first + index + 1)} />
          <bdi className={styles.text}>
            {spans.length === 0 ? "\n" : spans.map((span, place) => <SpanView key={place} span={span} words={words} />)}
            {rest > 0 && <span className={styles.rest}>{text.log.longLine(bytes(rest))}</span>}
          </bdi>
        </div>
      ))}
    </div>
  );
}

function SpanView({ span, words }: { span: Span; words: string }) {
  const content = words ? marked(span.text, words) : span.text;
  if (span.style === PLAIN || Object.keys(span.style).length === 0) return content;
  return (
    <span className={classOf(span.style)} style={styleOf(span.style)}>
      {content}
    </span>
  );
}

function marked(content: string, words: string): ReactNode {
  const parts: ReactNode[] = [];
  const lower = content.toLowerCase();
  const wanted = words.toLowerCase();
  let at = 0;
  for (let found = lower.indexOf(wanted); found >= 0 && parts.length < 400; found = lower.indexOf(wanted, at)) {
    parts.push(content.slice(at, found), <mark key={found}>{content.slice(found, found + words.length)}</mark>);
    at = found + words.length;
  }
  parts.push(content.slice(at));
  return parts;
}

function classOf(style: Style): string {
  return classes(
    typeof style.color === "number" && styles[`c${style.color}`],
    typeof style.background === "number" && styles[`b${style.background}`],
    style.isBold && styles.bold,
    style.isDim && styles.dim,
    style.isItalic && styles.italic,
    style.isUnderlined && styles.underlined,
    style.isStruck && styles.struck,
    style.isInverse && styles.inverse,
  );
}

function styleOf(style: Style): { color?: string; backgroundColor?: string } | undefined {
  if (typeof style.color !== "string" && typeof style.background !== "string") return undefined;
  return { color: typeof style.color === "string" ? style.color : undefined, backgroundColor: typeof style.background === "string" ? style.background : undefined };
}

export function plainText(lines: LogLines): string {
  return lines.slice(0, lines.length).map(withoutAnsi).join("\n");
}
