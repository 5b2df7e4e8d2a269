import json
from typing import get_args

import httpx2
import pytest
from anthropic.types.shared.error_type import ErrorType
from pydantic import SecretStr

from explorer.llm.faults import KINDS, Refusal, model_error, read_refusal, redact, refusal_of, retry_after
from explorer.llm.options import Endpoint
from explorer.schema.errors import ModelFault

PLACE = Endpoint("Someone", "https://user:word@example.com/v1", "SOME_KEY", "SOME_URL", SecretStr("secret-key"))

PER_MINUTE = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: "
    "generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10\nPlease retry in 20.04466179s."
)
"""What Google's servers say when a limit per minute is reached."""


def test_every_error_type_of_the_sdk_is_known() -> None:
    """No error type that the SDK names is left to chance."""
    assert set(get_args(ErrorType)) <= KINDS.keys()


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (400, '{"error": {"code": "context_length_exceeded", "message": "x"}}', ModelFault.CONTEXT_EXCEEDED),
        (
            400,
            '{"error": {"code": 400, "message": "request (9 tokens) exceeds the available context size (4 tokens)"}}',
            ModelFault.CONTEXT_EXCEEDED,
        ),
        (
            400,
            '{"error": {"message": "This model\'s maximum context length is 8192 tokens."}}',
            ModelFault.CONTEXT_EXCEEDED,
        ),
        (429, '{"error": {"message": "prompt is too long for your tokens per minute"}}', ModelFault.RATE_LIMITED),
        (429, '{"error": {"code": "insufficient_quota", "message": "pay"}}', ModelFault.CREDENTIALS),
        (400, '{"error": {"type": "billing_error", "message": "balance too low"}}', ModelFault.CREDENTIALS),
        (402, '{"error": {"message": "Insufficient Balance"}}', ModelFault.CREDENTIALS),
        (200, '{"error": {"code": 402, "message": "no"}}', ModelFault.CREDENTIALS),
        (429, json.dumps([{"error": {"code": 429, "message": PER_MINUTE}}]), ModelFault.RATE_LIMITED),
        (400, '{"error": {"code": "invalid_api_key", "message": "x"}}', ModelFault.CREDENTIALS),
        (404, '{"error": {"message": "model \\"x\\" not found", "type": "api_error"}}', ModelFault.UNKNOWN_MODEL),
        (400, '{"error": {"code": "model_not_found", "message": "x"}}', ModelFault.UNKNOWN_MODEL),
        (404, "not here", ModelFault.REJECTED),
        (
            400,
            '{"error": {"message": "messages.1.content.0: The block is bound to a different conversation."}}',
            ModelFault.STALE_REASONING,
        ),
        (429, '{"error": {"message": "messages.1: Invalid signature in thinking block"}}', ModelFault.STALE_REASONING),
        (408, "", ModelFault.TRANSPORT),
        (500, '{"error": "boom"}', ModelFault.OVERLOADED),
        (422, '{"detail": "no"}', ModelFault.REJECTED),
        (418, "[[", ModelFault.REJECTED),
        (200, '{"error": {"code": 502, "message": "upstream"}}', ModelFault.OVERLOADED),
        (200, '{"error": {"code": "429", "message": "slow"}}', ModelFault.RATE_LIMITED),
        (200, '{"error": {"type": "api_error", "message": "x"}}', ModelFault.OVERLOADED),
        (200, '{"error": {"type": "never_heard_of", "message": "x"}}', ModelFault.TRANSPORT),
        (200, '{"error": {"type": "invalid_request_error", "message": "x"}}', ModelFault.REJECTED),
    ],
)
def test_errors_are_sorted_by_status_and_body(status: int, body: str, fault: ModelFault) -> None:
    """Each vendor's way of saying a thing leads to the same fault."""
    assert read_refusal(httpx2.Response(status, text=body)).fault is fault


def test_a_limit_per_minute_says_when_to_ask_again() -> None:
    """Google's answer has the words of an empty account, and no header."""
    refusal = read_refusal(httpx2.Response(429, text=json.dumps([{"error": {"code": 429, "message": PER_MINUTE}}])))
    assert refusal.retry_after_s == pytest.approx(20.04466179)
    assert refusal.cure is None


def test_a_refusal_for_lack_of_credit_keeps_the_words_of_the_server() -> None:
    """It is about the account: the key is right, so it is not called refused."""
    refused = model_error(Refusal(400, message="Your credit balance is too low."), PLACE)
    assert refused.message.endswith(
        "refused the request for lack of credit (status 400): Your credit balance is too low."
    )
    assert (refused.exit_code, refused.hint.partition(",")[0]) == (4, "add credit to the provider's account")


def test_a_refused_key_is_never_quoted() -> None:
    """What servers say about a key they refuse is left out, and keys are struck out of anything else."""
    refused = model_error(Refusal(401, message="Incorrect key: secret-key"), PLACE)
    assert "secret-key" not in refused.message
    assert "word" not in refused.message
    assert "SOME_KEY" in refused.hint
    assert redact("bad secret-key and sk-abc***xyz\nhere", PLACE) == "bad *** and *** here"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates are read; nonsense is no wish."""
    assert retry_after(httpx2.Headers(headers)) == seconds


def test_error_bodies_of_any_shape_are_read() -> None:
    """An error may be an object, a text, or stand alone."""
    assert refusal_of({"error": "boom"}).message == "boom"
    assert refusal_of({"detail": "no"}).message == "no"
    assert refusal_of({"error": None}).message == ""
