"""Finds English that a reader stumbles over, and suggests a plainer wording. `make check` runs it.

It reads comments, docstrings, messages, test names, SQL comments and Markdown. Code blocks and `code` are skipped.
`python -m tools.prose --all` also reports the files in NOT_YET, and counts the findings of each package.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tools.prose_texts import Text, texts_of

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("src", "tests", "docs", "benchmarks", "tools")
SUFFIXES = {".py", ".sql", ".md"}
# Quotes every banned construction.
ITSELF = {"tools/prose.py", "tests/test_prose.py"}
# Made from other files, which are checked themselves.
GENERATED = {"src/foliot/store/schema.sql"}
# Files that still have findings. Remove a glob as soon as its files are clean; add none.
NOT_YET: tuple[str, ...] = ()

# A sentence starts a text, or follows the end of another one.
START = r"(?:^|(?<=[.!?] )|(?<=[.!?][)\"'`*] ))[_\"'(]*"
# A question may begin with "what"; a statement may not.
STATEMENT = r"(?=[^.!?]*(?:[.!;:]|$))(?![^.!]*\?)"


@dataclass(frozen=True)
class Rule:
    pattern: re.Pattern[str]
    reason: str
    suggestion: str


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    found: str
    rule: Rule

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: {self.rule.reason}; {self.rule.suggestion}"


def _opening(words: str, suggestion: str) -> Rule:
    return Rule(re.compile(rf"{START}(?i:{words})\b{STATEMENT}"), "the sentence does not name its subject", suggestion)


def _phrase(words: str, reason: str, suggestion: str) -> Rule:
    return Rule(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), reason, suggestion)


RULES = (
    _opening("what(?!'s)", "name the thing: 'Runs that are due ...'"),
    _opening("whatever", "name the thing: 'Any output of the command ...'"),
    _opening("who|whoever|whom", "name the person or part: 'A client that ...'"),
    _opening("whose", "name the owner"),
    _opening("those (?:who|that|whom|which|whose|of)", "repeat the noun: 'Runs that ...'"),
    _opening("one that|ones that|that which", "repeat the noun: 'A run that ...'"),
    _opening("of (?:what|those|whom)", "begin with the subject"),
    _opening("by (?:either|what|whom)", "name both, or say how"),
    _phrase("goes on|went on|going on", "an idiom", "write 'continues' or 'keeps running'"),
    _phrase(
        "(?:is|are|was|were|be|been) told(?! apart| to)",
        "hides who reports it",
        "write 'is reported', 'is logged' or 'learns'",
    ),
    _phrase("(?:is|are|was|were|be|been) handed", "hides who passes it", "write 'gets', 'receives' or 'passes'"),
    _phrase("asked for", "vague", "write 'requested'"),
    _phrase("may be asked", "vague", "say who asks, and what"),
    _phrase(r"(?:is|are|was|were) over(?! (?:the|a|an|its|\d))", "an idiom", "write 'has expired' or 'has ended'"),
    _phrase("(?:comes?|came) of it", "an idiom", "write 'the result'"),
    _phrase("the (?:longer|more|less|fewer|older) the", "a proverb, not a rule", "say how one depends on the other"),
    _phrase("the oftener|so often", "unclear", "say how often"),
    _phrase("(?:so|that) many", "no number", "say how many, or 'the same number of'"),
    _phrase("anew", "archaic", "write 'again'"),
    _phrase("of its own accord", "archaic", "write 'by itself'"),
    _phrase("as ever", "archaic", "write 'as usual', or leave it out"),
    _phrase("thereby|whereby|thereof|therein|wherein|hence", "archaic", "start a new sentence, or use 'so'"),
    _phrase("at the latest", "a calque", "write 'within ...' or 'no later than'"),
    _phrase("(?:in|at) need|in the stead of", "archaic", "write 'when needed' or 'instead of'"),
)


def findings_in(path: str, texts: Iterator[Text]) -> Iterator[Finding]:
    for text in texts:
        for rule in RULES:
            for match in rule.pattern.finditer(text.words):
                yield Finding(path, text.line_at(match.start()), _around(text.words, match), rule)


def _around(words: str, match: re.Match[str]) -> str:
    """The match with a few of the words after it, so that a reader recognizes the sentence."""
    end = words.find(" ", min(match.end() + 25, len(words)))
    return words[match.start() : end if end >= 0 else len(words)].strip()


def checked_files(root: Path) -> Iterator[Path]:
    for path in [*root.glob("*.md"), *(path for place in PLACES for path in (root / place).rglob("*"))]:
        name = path.relative_to(root).as_posix()
        if path.suffix in SUFFIXES and name not in ITSELF | GENERATED:
            yield path
    yield root / "Makefile"


def findings(root: Path) -> list[Finding]:
    found = (
        finding
        for path in checked_files(root)
        for finding in findings_in(path.relative_to(root).as_posix(), texts_of(path))
    )
    return sorted(found, key=lambda finding: (finding.path, finding.line))


def _package(path: str) -> str:
    parts = path.split("/")
    depth = 3 if parts[0] == "src" else 2
    return "/".join(parts[:depth]) if len(parts) > depth else "/".join(parts[: depth - 1]) or path


def main(arguments: list[str]) -> int:
    everything = arguments == ["--all"]
    found = findings(ROOT)
    if not everything:
        found = [finding for finding in found if not any(fnmatch(finding.path, glob) for glob in NOT_YET)]
    for finding in found:
        print(finding)
    if everything:
        for package, count in sorted(Counter(_package(finding.path) for finding in found).items()):
            print(f"{count:6} {package}")
    if found:
        print(f"{len(found)} sentences to rewrite")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
