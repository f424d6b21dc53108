"""Problem documents, as tests compare them."""

from __future__ import annotations

import httpx

JSON = {"content-type": "application/json"}


def problem_of(answer: httpx.Response) -> tuple[int, str, str | None]:
    """The status, the code and the field of a problem, after checks of the rest."""
    document = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert document["status"] == answer.status_code
    assert document["type"] == f"urn:foliot:problem:{document['code']}"
    assert document["detail"]
    return answer.status_code, document["code"], document.get("field")
