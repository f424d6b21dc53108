"""Advice for text that other schedulers, or people in a hurry, take for cron: how to write it here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from foliot.config import did_you_mean

SYSTEMD_WORDS = ("minutely", "hourly", "daily", "weekly", "monthly", "yearly", "annually", "quarterly", "semiannually")
PERIOD = re.compile(r"(?:EVERY\s+)?[0-9.]+\s*[A-Z]+|P(?:[0-9.]+[WD])*(?:T(?:[0-9.]+[HMS])+)?", re.IGNORECASE)
INSTEAD = {
    "@once": "submit the job without a schedule, or with schedule_time",
    "@quarterly": "write 0 0 1 */3 *",
    "@semiannually": "write 0 0 1 */6 *",
    "@noon": "write 0 12 * * *",
    "@weekdays": "write 0 0 * * MON-FRI",
    "@workdays": "write 0 0 * * MON-FRI",
    "@weekends": "write 0 0 * * SAT,SUN",
    "@fortnightly": "use every: 2w",
    "@biweekly": "use every: 2w",
    "@minutely": "write @every_minute",
    "@secondly": "write * * * * * *",
    "@every_second": "write * * * * * *",
    "@continuous": "use every: 1s with overlap: skip",
}
UNIT_NAMES = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def long_step(field: str, unit: str, part: str, step: int, first: int) -> str:
    """For a step that is longer than its range or its field."""
    names_one = f"the step {step} is longer than what it steps through, so {part} names {first} alone"
    if part[0] not in "*?H" or "(" in part:
        return f"{names_one}: write {first}, or a shorter step"
    if unit:
        return f"{names_one}; every {step} {UNIT_NAMES[unit]} cannot be written in cron: use every: {step}{unit}"
    return f"{names_one}; every {step} {field}s cannot be written in cron: give the instants as times"


def reversed_range(part: str, low: int, high: int, bounds: tuple[int, int]) -> str:
    """For a range in a field where none runs past the end."""
    message = "the range ends before it begins"
    if "/" in part or "(" in part:
        return message
    round_the_end = f", or {low}-{bounds[1]},{bounds[0]}-{high} to go round the end" if bounds[0] == 0 else ""
    return f"{message}: write {high}-{low}{round_the_end}"


def unknown_alias(text: str, known: Iterable[str]) -> str:
    word = text.split()[0].lower()
    if word in ("@reboot", "@startup"):
        return (
            f"{word}: a cluster has no such moment; let systemd run it when the machine starts, or submit a job that "
            f"runs once; known: {', '.join(sorted(known))}"
        )
    if word == "@every":
        return "@every: give it a period, such as @every 5m, and nothing else; or use every: 5m"
    if found := re.fullmatch(r"@([0-9]{1,9})\s*([smhdw])[a-z]*", text.lower()):
        return f"a period is written as @every {found[1]}{found[2]}, or given as every: {found[1]}{found[2]}"
    if re.fullmatch(r"@[0-9]+", word):
        return f"{word}: a period in seconds is written as every: {word[1:]}s"
    if len(text.split()) > 1 and word in set(known):
        return f"{word} stands alone, without other fields"
    advice = f": {INSTEAD[word]}" if word in INSTEAD else did_you_mean(text[:100], list(known))
    return f"there is no alias {text[:100]!r}{advice}; known: {', '.join(sorted(known))}, @every 5m"


def not_cron(expression: str, pieces: Sequence[str]) -> str:
    """For text that has the wrong number of fields."""
    text = expression.strip()
    if text.lower() in SYSTEMD_WORDS:
        return f"; {INSTEAD.get(f'@{text.lower()}', f'write @{text.lower()}')}"
    if re.match(r"R[0-9]*/", text, re.IGNORECASE):
        return "; a repeated interval is given as every and start_at"
    if "FREQ=" in text.upper():
        return "; a rule of iCalendar is written as cron, such as '0 9 * * MON', or its instants are given as times"
    if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return "; an instant is given as schedule_time, or several as times"
    if PERIOD.fullmatch(text) or text.upper().startswith("EVERY "):
        return "; a period is given as every: 5m"
    if text.upper().startswith("ONCALENDAR") or "*-*" in text or ".." in text or re.search(r"[0-9]:[0-9]", text):
        return "; this looks like OnCalendar of systemd: 'Mon..Fri 09:00' is '0 9 * * MON-FRI'"
    if text.lower().startswith("crontab("):
        return "; write the fields of Celery's crontab() as one text, such as '0 4 * * *'"
    if any(piece.startswith("#") for piece in pieces):
        return "; an expression has no comment"
    if any(piece.startswith((",", "-", "/")) or piece.endswith((",", "-", "/")) for piece in pieces):
        return "; a field has no spaces: write 1,2 and 1-5 and */5"
    return ""


def empty_part(text: str) -> str:
    if text == "+":
        return "+ stands before a day of the week, such as +FRI"
    return "an item of the list is empty; a list has commas between its items and no spaces: 1,2,3"


def year_last(texts: Sequence[str]) -> str:
    """For six fields, if the last one is a year."""
    if not re.fullmatch(r"[0-9]{4}(?:[-,/][0-9]+)*", texts[-1]):
        return ""
    return (
        f"; a year is the seventh field, and a second the first: write 0 {' '.join(texts)}, "
        "or cron(...) around the six fields of AWS"
    )


def out_of_range(field: str, number: int) -> str:
    if field == "hour" and number == 24:
        return "; midnight is 0"
    if field in ("second", "minute") and number == 60:
        return "; the next one begins with 0"
    return ""


def unreadable(field: str, part: str, bounds: tuple[int, int], names: Sequence[str]) -> str:
    """For a part of a field."""
    special = _of_days(field, part) or _of_characters(field, part)
    if special:
        return f"; {special}"
    if re.fullmatch(r"-[0-9]+.*", part):
        return "; there are no negative numbers"
    known = f"; write {bounds[0]} to {bounds[1]}"
    return (
        f"{known}, or {names[0][:3]} to {names[-1][:3]}{did_you_mean(part, [*names, *(name[:3] for name in names)])}"
        if names
        else known
    )


def _of_days(field: str, part: str) -> str:
    if part.startswith("+"):
        return "+ stands once, before the whole day of the week, as in 0 0 13 * +FRI"
    return {"day-of-month": _of_dates, "day-of-week": _of_weekdays}.get(field, lambda _: "")(part)


def _of_dates(part: str) -> str:
    if part == "LAST":
        return "the last day of the month is L"
    if "#" in part or re.fullmatch(r"[0-9]L|L[0-9]|[A-Z]{3,}L?", part):
        return (
            "days of the week stand in the last field, as MON#2 or FRIL; the last day of the month is L, three "
            "days before it L-3"
        )
    return "W stands after one day, as 15W, after L as LW, or after both as L-3W" if "W" in part else ""


def _of_weekdays(part: str) -> str:
    if found := re.fullmatch(r"L-?([0-7]|[A-Z]{3,})", part):
        return f"the last one of a month is {found[1]}L"
    if re.fullmatch(r"[A-Z0-9]+-[A-Z0-9]+L", part):
        return f"the last of each of these days is {part[:-1]}#L"
    if "#" in part:
        return "the second Monday is MON#2, the last MON#L, the first of each workday MON-FRI#1"
    return "W belongs to the day of the month" if re.fullmatch(r"[0-9]+W", part) else ""


def _of_characters(field: str, part: str) -> str:
    if "~" in part:
        return "a time that is drawn once for the job is written H(0-30)"
    if re.match(r"R(\W|$)", part):
        return "a time that is drawn once for the job is written H, or H(0-30) from a range"
    if "H" in part and field == "year":
        return "H is not for years"
    if any(quote in part for quote in "\"'`"):
        return "leave out the quotes"
    if part[-1:] == "C" and field in ("day-of-month", "day-of-week"):
        return "days off are a calendar: name it as calendar"
    if not part.isascii():
        return f"{next(character for character in part if not character.isascii())!r} is not a character of cron"
    if re.search(r"/$|/[^0-9]|//|/.*/", part):
        return "a step is a number after one /, as */5"
    return ""
