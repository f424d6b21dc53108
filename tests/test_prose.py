"""The check of the project's English: it finds a banned construction wherever prose stands, and nothing in code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.prose import NOT_YET, ROOT, Finding, checked_files, findings_in
from tools.prose_texts import MAKE_COMMENT, SQL_COMMENT, Text, comment_texts, markdown_texts, python_texts


def found_in_python(source: str, *, messages: bool = True) -> list[Finding]:
    return list(findings_in("x.py", python_texts(source, messages=messages)))


@pytest.mark.parametrize(
    "sentence",
    [
        "What is due becomes ready.",
        "It is fenced. What comes late matches nothing.",
        "Whoever asks gets it.",
        "Those that ended are dropped.",
        "Who follows events reads history.",
        "Of what came without a hint, the announcer tells.",
        "By either.",
        "The run goes on.",
        "The caller is told.",
        "The longer the backlog, the slower the poll.",
        "It retries so often.",
        "Cursors are set anew.",
        "The lease is over.",
        "It ends of its own accord.",
        "It polls as ever.",
        "It thereby wakes the worker.",
        "A lock that was asked for.",
    ],
)
def test_prose_finds_a_banned_construction(sentence: str) -> None:
    assert list(findings_in("x.md", iter([Text(((1, sentence),))])))


@pytest.mark.parametrize(
    "sentence",
    [
        "The worker claims runs that are due.",
        "What happens when a worker dies?",
        "The reaper decides what becomes of the run.",
        "Two names can't be told apart.",
        "The estimate is over the limit.",
        "It runs over HTTP.",
    ],
)
def test_prose_accepts_plain_english(sentence: str) -> None:
    assert not list(findings_in("x.md", iter([Text(((1, sentence),))])))


def test_prose_reports_file_line_words_and_suggestion() -> None:
    (finding,) = found_in_python('x = 1\n# The claim is fenced,\n# and the run goes on.\n"""fine"""\n')
    assert str(finding) == "x.py:3: 'goes on.': an idiom; write 'continues' or 'keeps running'"


@pytest.mark.parametrize(
    "source",
    [
        "x = 1  # goes on\n",
        '"""First line.\n\nWhat ends is dropped."""\n',
        'raise ValueError("the run goes on")\n',
        'raise ValueError(f"what {name} says is wrong")\n',
        "async def test_what_ends_is_dropped() -> None: ...\n",
    ],
)
def test_python_texts_cover_comments_docstrings_messages_and_test_names(source: str) -> None:
    assert len(found_in_python(source)) == 1


def test_python_texts_skip_short_strings_code_and_the_strings_of_tests() -> None:
    assert not found_in_python('x = {"anew": 1}  # see `goes on`\n')
    assert not found_in_python('x = "the run goes on"\n', messages=False)


def test_markdown_texts_skip_code_and_headings() -> None:
    page = "# What it is\n\nPlain.\n\n```\ngoes on\n```\n\n- What ends\n  goes\n  on.\n\n| anew | plain |\n"
    found = sorted((finding.line, finding.found) for finding in findings_in("x.md", markdown_texts(page)))
    assert found == [(9, "What ends goes on."), (10, "goes on."), (13, "anew")]


def test_comment_texts_read_sql_and_make() -> None:
    sql = "select 1; -- fine\n-- What is due\n-- goes on.\nselect 'a--b';\n"
    assert [text.words for text in comment_texts(sql, SQL_COMMENT)] == ["fine What is due goes on."]
    assert [text.words for text in comment_texts("up: x ## run it\n", MAKE_COMMENT)] == ["run it"]


def test_checked_files_include_every_kind_of_prose() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in checked_files(ROOT)}
    assert {"README.md", "Makefile", "docs/cron.md", "src/foliot/clock.py", "src/foliot/store/sql/runs.sql"} <= names


def test_every_exception_names_an_existing_file() -> None:
    assert [glob for glob in NOT_YET if not any(Path(ROOT).glob(glob))] == []
