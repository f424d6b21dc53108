"""Sources that files declare, and the changes that bring the server's sources in line with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from foliot.api.requests.bodies import decode
from foliot.errors import Invalid, NotFound
from foliot.model.run_request import Name
from foliot.model.source import Source, check_source
from foliot.sdk.source_operations import SourceOperations

KIND_FIELD = "from"
"""A document's own `kind` says that it is a source, so the kind of the source has another name."""
source_decoder = msgspec.json.Decoder(Source)


@dataclass(frozen=True, slots=True)
class DeclaredSource:
    """A source that a file declares."""

    name: str
    file: str
    line: int
    source: Source

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the source, as in the API."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.source))
        return found


def declared_source(fields: Mapping[str, Any], file: str, line: int) -> DeclaredSource:
    """Parses a source. Raises `Invalid`, as the server would, for invalid fields."""
    rest = {name: value for name, value in fields.items() if name not in ("name", KIND_FIELD)}
    try:
        name = msgspec.convert(fields.get("name"), Name)
    except msgspec.ValidationError:
        raise Invalid("name: required; letters, digits and _ . : - only, 200 at most", field="name") from None
    if KIND_FIELD not in fields:
        raise Invalid(f"{KIND_FIELD}: required in a source: redis, rabbitmq, nats, kafka, sqs or webhook", field="")
    try:
        return DeclaredSource(name, file, line, checked_source(rest | {"kind": fields[KIND_FIELD]}))
    except Invalid as error:
        if error.field == "kind":
            raise Invalid(error.detail.replace("kind", KIND_FIELD, 1), field=KIND_FIELD) from None
        raise


def checked_source(fields: Mapping[str, Any]) -> Source:
    """The source with the fields of the API. Raises `Invalid`."""
    source = decode(msgspec.json.encode(fields), source_decoder)
    check_source(source)
    return source


def changes_of(client: SourceOperations, sources: Sequence[DeclaredSource]) -> list[dict[str, tuple[Any, Any]] | None]:
    """The old and the new value of each changed field, for each source. None for a new source."""
    found: list[dict[str, tuple[Any, Any]] | None] = []
    for source in sources:
        try:
            before = client.get_source(source.name).document["definition"]
        except NotFound:
            found.append(None)
            continue
        after = source.fields
        found.append({
            field: (before.get(field), after.get(field))
            for field in {**before, **after}
            if before.get(field) != after.get(field)
        })  # fmt: skip
    return found
