"""Responses that write their own headers equal those of the framework."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from foliot.api.json_response import json_response


def test_a_json_response_has_the_headers_that_the_framework_would_write() -> None:
    body, headers = {"text": "gr\u00fc\u00dfe"}, {"Location": "/v1/jobs/7"}
    framework = Response(msgspec.json.encode(body), 201, headers, media_type="application/json")
    own = json_response(body, 201, headers)
    assert sorted(own.raw_headers) == sorted(framework.raw_headers)
    assert (own.body, own.status_code) == (framework.body, 201)
