"""Signatures of webhooks, as Standard Webhooks defines them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.webhook_signature import TOLERANCE_SECONDS, is_signed, signature_of

NOW = 1_700_000_000
# The example of the specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_example_of_the_specification_is_signed() -> None:
    assert signature_of(SECRET, message_id=MESSAGE, timestamp=TIMESTAMP, body=BODY) == SIGNATURE


def signed(secret: str = "s", *, body: bytes = b"{}", age: int = 0, message_id: str = "m", extra: str = "") -> bool:
    timestamp = str(NOW - age)
    signature = signature_of("s", message_id="m", timestamp=timestamp, body=b"{}")
    return is_signed(
        secret,
        message_id=message_id,
        timestamp=timestamp,
        signatures=f"{extra}{signature}",
        body=body,
        now_seconds=NOW,
    )


def test_one_of_several_signatures_is_enough() -> None:
    assert signed()
    assert signed(extra="v1,bm90IGl0 ")
    assert not signed(extra="v1,bm90IGl0 " * 10)


@pytest.mark.parametrize(
    "changed",
    [{"secret": "t"}, {"body": b"[]"}, {"message_id": "n"}, {"message_id": ""}, {"message_id": "m" * 256}],
)
def test_a_changed_message_is_not_signed(changed: dict[str, object]) -> None:
    assert not signed(**changed)  # type: ignore[arg-type]


@pytest.mark.parametrize("sign", [1, -1])
def test_an_old_or_future_message_is_refused(sign: int) -> None:
    assert signed(age=sign * TOLERANCE_SECONDS)
    assert not signed(age=sign * (TOLERANCE_SECONDS + 1))


@given(st.text(), st.text(), st.text(), st.binary())
def test_any_text_is_handled(message_id: str, timestamp: str, signatures: str, body: bytes) -> None:
    assert not is_signed(
        SECRET, message_id=message_id, timestamp=timestamp, signatures=signatures, body=body, now_seconds=NOW
    )


def test_a_secret_in_base64_and_as_text_differ() -> None:
    key = base64.b64encode(b"key").decode()
    assert signature_of(f"whsec_{key}", message_id="m", timestamp="1", body=b"") == signature_of(
        "key", message_id="m", timestamp="1", body=b""
    )
