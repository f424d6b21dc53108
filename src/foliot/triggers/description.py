"""A cron expression in words, with notes on its surprises."""

from __future__ import annotations

import re
from collections.abc import Iterable

from foliot.triggers.cron_fields import DAY, FIELDS, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, CronFields, Field

MONTHS = tuple(name.capitalize() for name in MONTH.names)
WEEKDAYS = tuple(name.capitalize() for name in WEEKDAY.names)
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
# The unit in which each field starts again.
AROUND = {SECOND: "minute", MINUTE: "hour", HOUR: "day", MONTH: "year"}
UNITS = ((604_800, "week"), (86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def explain(fields: CronFields) -> str:
    return ", ".join(part for part in (_time(fields), _days(fields), _months(fields), _years(fields)) if part)


def explain_period(seconds: int) -> str:
    """Of `every`."""
    return f"{period_in_words(seconds)}, counted from when the job is made or from its start_at"


def period_in_words(seconds: int) -> str:
    words, rest = [], seconds
    for length, name in UNITS:
        count, rest = divmod(rest, length)
        if count:
            words.append(f"{count} {name}{'s' if count > 1 else ''}")
    period = words[0].removeprefix("1 ") if len(words) == 1 else _list(words)
    return f"every {period}"


def notes_on(fields: CronFields) -> list[str]:
    """The surprises in an expression for the person who wrote it."""
    notes = [note for field, text in zip(FIELDS, fields.texts, strict=False) if (note := _on_steps(field, text))]
    day, weekday = fields.texts[3], fields.texts[5]
    if not fields.days.needs_both:
        notes.append(f"a day that fits one of {day} and {weekday} is enough; for days that fit both, write +{weekday}")
    has_question_mark = "?" in (day, weekday)
    if fields.has_seconds and has_question_mark and re.search(r"(?<![0-9/#])[1-7](?![0-9])", weekday):
        notes.append(
            "day-of-week: 0 and 7 are Sunday here and 1 is Monday, as in crontabs; in Quartz 1 is Sunday: names leave "
            "no doubt"
        )
    return notes


def _on_steps(field: Field, text: str) -> str:
    """A hint about a step that starts again before a full period."""
    found = re.search(r"(?:^|,)(?P<part>[*?]/(?P<step>[0-9]+))", text)
    step = int(found["step"]) if found else 1
    if found is None or step == 1 or step >= field.size or (field.size % step == 0 and field is not DAY):
        return ""
    unit = field.unit or "month"
    use = f"; for an even period, use every: {step}{field.unit}" if field.unit else ""
    if field is DAY:
        return f"day-of-month: {found['part']} starts again on the 1st of each month{use}"
    if field is WEEKDAY:
        return f"day-of-week: {found['part']} starts again on each Sunday{use}"
    last = field.size - 1 - (field.size - 1) % step
    name = {"s": "seconds", "m": "minutes", "h": "hours"}.get(unit, "months")
    return (
        f"{field.name}: {found['part']} starts again with each {AROUND[field]}, {field.size - last} {name} after "
        f"its last{use}"
    )


def _time(fields: CronFields) -> str:
    second, minute, hour = fields.texts[:3]
    if len(fields.hours) <= 4 and len(fields.minutes) == 1 and len(fields.seconds) == 1 and not _is_star(hour):
        tail = f":{fields.seconds[0]:02}" if fields.seconds[0] else ""
        return "at " + _list([f"{h:02}:{fields.minutes[0]:02}{tail}" for h in fields.hours])
    parts = []
    if second != "0":
        parts.append(_unit(SECOND, second, fields.seconds))
    if second == "0" or minute not in ("*", "?"):
        parts.append(_unit(MINUTE, minute, fields.minutes))
    if hour not in ("*", "?"):
        parts.append(_unit(HOUR, hour, fields.hours))
    return ", ".join(parts)


def _unit(field: Field, text: str, numbers: tuple[int, ...]) -> str:
    name = field.name
    if text in ("*", "?", "*/1", "?/1"):
        return f"every {name}"
    if text[:2] in ("*/", "?/") and text[2:].isdecimal():
        return f"every {int(text[2:])} {name}s"
    return f"at {name}{'s' if len(numbers) > 1 else ''} {_numbers(numbers, field)}"


def _days(fields: CronFields) -> str:
    day_text, weekday_text = fields.texts[3], fields.texts[5].removeprefix("+")
    by_date = "" if day_text in ("*", "?") else "on " + _dates(fields)
    by_weekday = "" if weekday_text in ("*", "?") else "on " + _weekdays(fields)
    if by_date and by_weekday:
        if fields.days.needs_both:
            return f"{by_date} when that is {by_weekday.removeprefix('on ')}"
        return f"{by_date} or {by_weekday}"
    return by_date or by_weekday


def _dates(fields: CronFields) -> str:
    days = fields.days
    words = [f"day {_numbers(tuple(sorted(days.days)), DAY)} of the month"] if days.days else []
    words += [
        f"the day {before} before the last of the month" if before else "the last day of the month"
        for before in sorted(days.last_offsets)
    ]
    words += [f"the workday nearest to day {day}" for day in sorted(days.nearest)]
    if days.has_last_workday:
        words.append("the last workday of the month")
    words += [
        f"the workday nearest to the day {before} before the last of the month"
        for before in sorted(days.last_workday_offsets)
        if before
    ]
    return _list(words)


def _weekdays(fields: CronFields) -> str:
    days = fields.days
    words = [_names(sorted(days.weekdays), WEEKDAY, WEEKDAYS)] if days.weekdays else []
    words += [
        f"the {ORDINALS[nth]} {_each(day for day, other in days.nth_weekdays if other == nth)} of the month"
        for nth in sorted({nth for _, nth in days.nth_weekdays})
    ]
    if days.last_weekdays:
        words.append(f"the last {_each(days.last_weekdays)} of the month")
    return _list(words)


def _each(weekdays: Iterable[int]) -> str:
    return _list([WEEKDAYS[day] for day in sorted(weekdays)])


def _months(fields: CronFields) -> str:
    if fields.texts[4] in ("*", "?"):
        return ""
    return "in " + _names(sorted(fields.months), MONTH, MONTHS)


def _years(fields: CronFields) -> str:
    if fields.years is None:
        return ""
    years = fields.years
    if len(years) > 3 and years == tuple(range(years[0], years[-1] + 1)):
        return f"in the years {years[0]} to {years[-1]}"
    if len(years) > 6:
        return f"in the years {years[0]}, {years[1]}, {years[2]} and so on to {years[-1]}"
    return "in " + _list([str(year) for year in years])


def _names(numbers: list[int], field: Field, names: tuple[str, ...]) -> str:
    span = _span(numbers, field)
    if span and 2 < len(numbers) < field.size:
        return f"{names[span[0] - field.low]} to {names[span[1] - field.low]}"
    return _list([names[number - field.low] for number in numbers])


def _numbers(numbers: tuple[int, ...], field: Field) -> str:
    span = _span(list(numbers), field)
    if span and len(numbers) > 3:
        return f"{span[0]} to {span[1]}"
    return _list([str(number) for number in numbers])


def _span(numbers: list[int], field: Field) -> tuple[int, int] | None:
    """The first and the last of numbers that follow each other without a hole, round the end of the field or not."""
    if len(numbers) == field.size:
        return numbers[0], numbers[-1]
    known = set(numbers)
    firsts = [number for number in numbers if field.reduced(number - 1) not in known]
    if len(firsts) != 1:
        return None
    return firsts[0], field.reduced(firsts[0] + len(numbers) - 1)


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def _is_star(text: str) -> bool:
    return text.startswith(("*", "?"))
