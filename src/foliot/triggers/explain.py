"""A cron expression in words."""

from __future__ import annotations

from foliot.triggers.cron_fields import CronFields

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")


def explain(fields: CronFields) -> str:
    return ", ".join(part for part in (_time(fields), _days(fields), _months(fields)) if part)


def _time(fields: CronFields) -> str:
    second, minute, hour = fields.texts[:3]
    if len(fields.hours) <= 4 and len(fields.minutes) == 1 and len(fields.seconds) == 1 and not _is_star(hour):
        tail = f":{fields.seconds[0]:02}" if fields.seconds[0] else ""
        return "at " + _list([f"{h:02}:{fields.minutes[0]:02}{tail}" for h in fields.hours])
    parts = []
    if second != "0":
        parts.append(_unit("second", second, fields.seconds))
    if second == "0" or minute not in ("*", "?"):
        parts.append(_unit("minute", minute, fields.minutes))
    if hour not in ("*", "?"):
        parts.append(_unit("hour", hour, fields.hours))
    return ", ".join(parts)


def _unit(name: str, text: str, numbers: tuple[int, ...]) -> str:
    if text in ("*", "?", "*/1"):
        return f"every {name}"
    if text.startswith("*/") and text[2:].isdecimal():
        return f"every {text[2:]} {name}s"
    return f"at {name}{'s' if len(numbers) > 1 else ''} {_numbers(numbers)}"


def _days(fields: CronFields) -> str:
    day_text, weekday_text = fields.texts[3], fields.texts[5]
    by_date = "" if day_text in ("*", "?") else "on " + _dates(fields)
    by_weekday = "" if weekday_text in ("*", "?") else "on " + _weekdays(fields)
    if by_date and by_weekday:
        if fields.days.needs_both:
            return f"{by_date} when that is {by_weekday.removeprefix('on ')}"
        return f"{by_date} or {by_weekday}"
    return by_date or by_weekday


def _dates(fields: CronFields) -> str:
    days = fields.days
    words = [f"day {_numbers(tuple(sorted(days.days)))} of the month"] if days.days else []
    words += [
        f"the day {before} before the last of the month" if before else "the last day of the month" for before in sorted(days.last_offsets)
    ]
    words += [f"the workday nearest to day {day}" for day in sorted(days.nearest)]
    if days.has_last_workday:
        words.append("the last workday of the month")
    return _list(words)


def _weekdays(fields: CronFields) -> str:
    days = fields.days
    ordered = sorted(days.weekdays)
    words = []
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        words.append(f"{WEEKDAYS[ordered[0]]} to {WEEKDAYS[ordered[-1]]}")
    else:
        words += [WEEKDAYS[day] for day in ordered]
    words += [f"the {ORDINALS[nth]} {WEEKDAYS[day]} of the month" for day, nth in sorted(days.nth_weekdays)]
    words += [f"the last {WEEKDAYS[day]} of the month" for day in sorted(days.last_weekdays)]
    return _list(words)


def _months(fields: CronFields) -> str:
    if fields.texts[4] in ("*", "?"):
        return ""
    return "in " + _list([MONTHS[month - 1] for month in sorted(fields.months)])


def _numbers(numbers: tuple[int, ...]) -> str:
    if len(numbers) > 3 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return _list([str(number) for number in numbers])


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def _is_star(text: str) -> bool:
    return text.startswith(("*", "?"))
