"""Alert rules that files declare, and the changes that bring the server's rules in line with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from foliot.api.requests.bodies import decode
from foliot.errors import Invalid, NotFound
from foliot.model.alert_rule import AlertRule, check_rule
from foliot.model.run_request import Name
from foliot.sdk.alert_operations import AlertOperations

rule_decoder = msgspec.json.Decoder(AlertRule)


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    """An alert rule that a file declares."""

    name: str
    file: str
    line: int
    rule: AlertRule

    @property
    def fields(self) -> dict[str, Any]:
        """Every field of the rule, as in the API."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.rule))
        return found


def declared_rule(fields: Mapping[str, Any], file: str, line: int) -> DeclaredRule:
    """Parses a rule. Raises `Invalid`, as the server would, for invalid fields."""
    rest = {name: value for name, value in fields.items() if name != "name"}
    try:
        name = msgspec.convert(fields.get("name"), Name)
    except msgspec.ValidationError:
        raise Invalid("name: required; letters, digits and _ . : - only, 200 at most", field="name") from None
    rule = decode(msgspec.json.encode(rest), rule_decoder)
    check_rule(rule)
    return DeclaredRule(name, file, line, rule)


def changes_of(client: AlertOperations, rules: Sequence[DeclaredRule]) -> dict[str, dict[str, tuple[Any, Any]] | None]:
    """The old and the new value of each changed field, by rule. None for a new rule."""
    found: dict[str, dict[str, tuple[Any, Any]] | None] = {}
    for rule in rules:
        try:
            before = client.get_alert_rule(rule.name).document["rule"]
        except NotFound:
            found[rule.name] = None
            continue
        after = rule.fields
        found[rule.name] = {
            field: (before.get(field), after.get(field))
            for field in {**before, **after}
            if before.get(field) != after.get(field)
        }
    return found
