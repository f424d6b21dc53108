"""Patterns of texts in requests, for the OpenAPI document. The code that parses these texts accepts a little more.

They do not tell everything: which day of a month there is, which time zone, and what a field of a cron expression
means.
"""

from __future__ import annotations

from foliot.triggers.durations import FORM

DAY_FORM = (
    r"(?:19[789][0-9]|20[0-9]{2}|21[0-9]{2})-"
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
OFFSET_FORM = r"(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])"
TIME_FORM = rf"{DAY_FORM}T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,6}})?)?{OFFSET_FORM}"
# Of a recurring job: part of a path, without blanks at its ends. Characters that Unicode calls unassigned or formless
# are refused as well.
NAME_FORM = r"[^\x00-\x20/\x7f-\xa0](?:[^\x00-\x1f/\x7f-\x9f]*[^\x00-\x20/\x7f-\xa0])?"

RECURRING_NAME = {"pattern": f"^{NAME_FORM}$"}
TIME = {"pattern": f"^{TIME_FORM}$"}
CRON = {"minLength": 1, "pattern": r"^[\t -~]*$", "examples": ["0 3 * * *", "@hourly"]}
DURATION = {"pattern": f"^(?:{FORM})$", "examples": ["90s", "1h30m"]}
ZONE = {"pattern": r"^[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*$", "examples": ["UTC", "Europe/Zurich"]}
