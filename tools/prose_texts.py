"""Takes the English out of a file: comments, docstrings, messages, test names, Markdown paragraphs."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

# A string literal with fewer words is a name, a key or a value.
WORDS_OF_A_MESSAGE = 3
CODE = re.compile(r"``.+?``|`[^`]*`|\]\([^)]*\)|<[^>]+>|https?://\S+")
FENCE = re.compile(r"\s*(?:```|~~~)")
LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
SQL_COMMENT = re.compile(r"(?:^|\s)--\s+(?P<text>.*)$")
MAKE_COMMENT = re.compile(r"(?:^|\s)##?\s+(?P<text>.*)$")


@dataclass(frozen=True)
class Text:
    """Some lines of prose, joined by spaces."""

    lines: tuple[tuple[int, str], ...]

    @property
    def words(self) -> str:
        return " ".join(text for _, text in self.lines)

    def line_at(self, offset: int) -> int:
        starts = [0, *accumulate(len(text) + 1 for _, text in self.lines)]
        return self.lines[min(bisect_right(starts, offset), len(self.lines)) - 1][0]


def texts_of(path: Path) -> Iterator[Text]:
    content = path.read_text()
    if path.suffix == ".py":
        yield from python_texts(content, messages="tests" not in path.parts)
    elif path.suffix == ".md":
        yield from markdown_texts(content)
    else:
        yield from comment_texts(content, SQL_COMMENT if path.suffix == ".sql" else MAKE_COMMENT)


def python_texts(source: str, *, messages: bool) -> Iterator[Text]:
    comments = [
        (token.start[0], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from _blocks(comments)
    tree = ast.parse(source)
    not_messages: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            not_messages.add(id(node.value))
            yield from _paragraphs(node.value.value, first=node.value.lineno)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Text(((node.lineno, node.name.removeprefix("test_").replace("_", " ")),))
    if messages:
        yield from _messages(tree, not_messages)


def markdown_texts(content: str) -> Iterator[Text]:
    """Headings are left out: "What Foliot promises" is a good one."""
    prose: list[tuple[int, str]] = []
    in_code = False
    for number, line in enumerate(content.splitlines(), start=1):
        if FENCE.match(line):
            in_code = not in_code
        elif not in_code and line.startswith("|"):
            for cell in line.strip("|").split("|"):
                yield from _blocks([(number, cell.strip())])
        elif not in_code and not line.startswith(("#", "    ")):
            prose.append((number, line))
    yield from _blocks(prose)


def comment_texts(content: str, comment: re.Pattern[str]) -> Iterator[Text]:
    found = ((number, comment.search(line)) for number, line in enumerate(content.splitlines(), start=1))
    yield from _blocks([(number, match["text"]) for number, match in found if match])


def _messages(tree: ast.AST, not_messages: set[int]) -> Iterator[Text]:
    """String literals that are sentences. An f-string is one text, with {} for each value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            not_messages.update(id(part) for part in node.values)
            yield from _message(node.lineno, "".join(_literal(part) for part in node.values))
        elif isinstance(node, ast.Constant) and id(node) not in not_messages:
            yield from _message(node.lineno, _literal(node))


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "{}"


def _message(line: int, literal: str) -> Iterator[Text]:
    words = literal.split()
    if len(words) >= WORDS_OF_A_MESSAGE:
        yield from _blocks([(line, " ".join(words))])


def _paragraphs(text: str, *, first: int) -> Iterator[Text]:
    yield from _blocks(enumerate(text.splitlines(), start=first))


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Text]:
    """Lines that follow each other are one text. A blank line or a list item begins another one."""
    block: list[tuple[int, str]] = []
    for number, line in lines:
        item = LIST_ITEM.match(line)
        if block and (item or not line.strip() or number != block[-1][0] + 1):
            yield Text(tuple(block))
            block = []
        if line.strip():
            block.append((number, CODE.sub("CODE", line[item.end() :] if item else line).strip()))
    if block:
        yield Text(tuple(block))
