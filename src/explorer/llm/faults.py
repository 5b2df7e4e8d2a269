"""Sorts refusals of providers, by type, status and body, into faults that each have one consequence."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import httpx2

from explorer.llm.hints import (
    NO_CREDIT,
    Cure,
    cure_of,
    foreign_key_hint,
    is_web_page,
    network_hint,
    page_title,
    says_when,
    url_hint,
)
from explorer.llm.options import Endpoint, public_url
from explorer.llm.wire_json import as_object, as_objects, as_text, repair_text
from explorer.network.client_options import PROXY_LOGIN_REQUIRED, login_problem
from explorer.schema.errors import ModelError, ModelFault
from explorer.schema.messages import JsonObject
from explorer.text.sanitize import single_line

MINUTE_S = 60
HOUR_S = 3600
MIN_KEY_CHARS = 8
"""The least length of a key that is removed in coded forms, too: shorter ones are parts of any text."""
MESSAGE_CHARS = 500
"""Limit of a server's text in an error."""
DETAIL_CHARS = 4_000
"""Limit of an error's body that is searched for what the server wants instead."""

KINDS: Mapping[str, ModelFault] = {
    "invalid_request_error": ModelFault.REJECTED,
    "authentication_error": ModelFault.CREDENTIALS,
    "billing_error": ModelFault.CREDENTIALS,
    "permission_error": ModelFault.CREDENTIALS,
    "not_found_error": ModelFault.UNKNOWN_MODEL,
    "request_too_large": ModelFault.CONTEXT_EXCEEDED,
    "rate_limit_error": ModelFault.RATE_LIMITED,
    "timeout_error": ModelFault.OVERLOADED,
    "api_error": ModelFault.OVERLOADED,
    "overloaded_error": ModelFault.OVERLOADED,
    "memory_precondition_failed_error": ModelFault.REJECTED,
    "memory_path_conflict_error": ModelFault.REJECTED,
    "conflict_error": ModelFault.OVERLOADED,
    "server_error": ModelFault.OVERLOADED,
    "rate_limit_exceeded": ModelFault.RATE_LIMITED,
    "model_not_found": ModelFault.UNKNOWN_MODEL,
    "invalid_api_key": ModelFault.CREDENTIALS,
    "insufficient_quota": ModelFault.CREDENTIALS,
    "server_is_overloaded": ModelFault.OVERLOADED,
    "service_unavailable_error": ModelFault.OVERLOADED,
    "slow_down": ModelFault.OVERLOADED,
    "vector_store_timeout": ModelFault.OVERLOADED,
    "invalid_encrypted_content": ModelFault.STALE_REASONING,
    "invalid_prompt": ModelFault.REJECTED,
    "data_residency_mismatch": ModelFault.REJECTED,
    "bio_policy": ModelFault.REJECTED,
    "misalignment_policy_violation": ModelFault.REJECTED,
}
"""The fault of each `type` or `code` of an error, such as one inside a stream whose status was 200."""

STRONGER_THAN_STATUS = frozenset(
    {"rate_limit_error", "rate_limit_exceeded", "overloaded_error", "model_not_found", "invalid_api_key"}
    | {"authentication_error", "insufficient_quota", "billing_error", "request_too_large"}
    | {"server_is_overloaded", "slow_down"}
)
"""Codes that are more exact than the status: an empty account answers 429, but waiting does not help."""

_STATUS: Mapping[int, ModelFault] = {
    401: ModelFault.CREDENTIALS,
    403: ModelFault.CREDENTIALS,
    408: ModelFault.TRANSPORT,
    409: ModelFault.OVERLOADED,
    413: ModelFault.CONTEXT_EXCEEDED,
    429: ModelFault.RATE_LIMITED,
}

_NO_SUCH_PATH = frozenset({404, 405})
_NOT_ABOUT_LENGTH = frozenset({401, 403, 404, 429})
_TOO_LONG = re.compile(
    r"prompt is too long|context_length_exceeded|maximum context length|available context size|"
    r"exceed_context_size|exceeds? (the )?(model'?s? )?(maximum )?context|context (window|length) (is )?exceeded|"
    r"input is too long|larger than the context|request_too_large",
    re.IGNORECASE,
)
_STALE_REASONING = re.compile(
    r"invalid `?signature`? in `?(redacted_)?thinking|bound to a different conversation|"
    r"thinking`? blocks in the latest assistant message cannot be modified|"
    r"encrypted content .{0,400}could not be (verified|decrypted)|was provided without its required|"
    r"items are not persisted when",
    re.IGNORECASE,
)
_NOT_ABOUT_REASONING = frozenset({401, 403, 404})
_KEY_LIKE = re.compile(r"\bsk-[\w*.-]{4,}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider's answer in place of a turn."""

    status: int
    """The HTTP status; 200 or less for an error inside a stream."""
    kind: str = ""
    code: str = ""
    message: str = ""
    retry_after_s: float | None = None
    url: str = ""
    """The URL of the request; empty for an error inside a stream."""
    page: str | None = None
    """The title of the web page that was sent; None when it was not a web page."""
    detail: str = ""
    """The whole answer: some servers name a refused field only in other fields."""

    @property
    def cure(self) -> Cure | None:
        """What fixes it; None where its text is not known."""
        return cure_of(f"{self.kind} {self.code} {self.message}", self._effective_status)

    @property
    def fault(self) -> ModelFault:
        """The fault: by known texts first, then length, exact codes, the status, and vague codes."""
        if self.cure is not None:
            return self.cure.fault
        if self.status not in _NOT_ABOUT_LENGTH and _TOO_LONG.search(f"{self.kind} {self.code} {self.message}"):
            return ModelFault.CONTEXT_EXCEEDED
        if self.status not in _NOT_ABOUT_REASONING and _STALE_REASONING.search(self.message):
            return ModelFault.STALE_REASONING
        for word in (self.code, self.kind):
            if word in KINDS and (word in STRONGER_THAN_STATUS or self._effective_status < 400):  # noqa: PLR2004
                return KINDS[word]
        return self._fault_of_status(self._effective_status)

    @property
    def _effective_status(self) -> int:
        """The status; for an error inside a stream, the status that gateways write as its code."""
        if self.status < 400 and self.code.isdecimal():  # noqa: PLR2004
            return int(self.code)
        return self.status

    def _fault_of_status(self, status: int) -> ModelFault:
        if status in _STATUS:
            return _STATUS[status]
        if status == 404:  # noqa: PLR2004
            is_about_model = "model" in self.message.lower()
            return ModelFault.UNKNOWN_MODEL if is_about_model else ModelFault.REJECTED
        if status >= 500:  # noqa: PLR2004
            return ModelFault.OVERLOADED
        return ModelFault.REJECTED if status >= 400 else ModelFault.TRANSPORT  # noqa: PLR2004


def read_refusal(response: httpx2.Response) -> Refusal:
    """Read an answer with an error status; its body may be anything, such as a proxy's HTML page."""
    text = response.text
    try:
        payload: object = json.loads(text)
    except (ValueError, RecursionError):
        payload = {}
    # Google's servers put the one error into a list.
    body = as_objects(payload)[0] if as_objects(payload) else as_object(payload)
    refusal = refusal_of(body, response.status_code)
    return Refusal(
        status=response.status_code,
        kind=refusal.kind,
        code=refusal.code,
        message=refusal.message or words_of_page(text),
        retry_after_s=_first_known(retry_after(response.headers), says_when(refusal.message)),
        url=_asked_url(response),
        detail=text[:DETAIL_CHARS],
        page=page_title(text) if is_web_page(response.headers.get("content-type", ""), text) else None,
    )


def _first_known(*seconds: float | None) -> float | None:
    return next((one for one in seconds if one is not None), None)


def _asked_url(response: httpx2.Response) -> str:
    try:
        return public_url(str(response.request.url))
    except RuntimeError:  # A response that was made by hand has no request.
        return ""


def refusal_of(body: JsonObject, status: int = 200) -> Refusal:
    """Read `{"error": {"type", "code", "message"}}`, and the shapes that other servers make of it."""
    raw_error = body.get("error", body)
    error = as_object(raw_error)
    code = error.get("code")
    return Refusal(
        status=status,
        kind=as_text(error.get("type")),
        code=str(code) if isinstance(code, str | int) else "",
        message=as_text(error.get("message")) or as_text(raw_error) or as_text(error.get("detail")) or _listed(error),
        detail=json.dumps(body)[:DETAIL_CHARS],
    )


def _listed(error: JsonObject) -> str:
    """Return the first of the faults that a server lists, with the field it is about (pydantic's form)."""
    inside = as_object(error.get("message"))
    faults = as_objects(error.get("detail")) or as_objects(inside.get("detail")) or as_objects(error.get("message"))
    if not faults:
        return ""
    path: list[object] = faults[0].get("loc") or []
    return f"{'.'.join(str(step) for step in path)}: {as_text(faults[0].get('msg'))}"


class RequestRefusedError(ModelError):
    """A refusal by a provider, for adapters that can write the request in another form."""

    def __init__(self, made: ModelError, refusal: Refusal) -> None:
        super().__init__(
            made.fault,
            made.message,
            hint=made.hint,
            retry_after_s=refusal.retry_after_s,
            is_wrong_server=made.is_wrong_server,
        )
        self.refusal = refusal
        """The server's answer."""
        self.status, self.code = refusal.status, refusal.code


def model_error(refusal: Refusal, endpoint: Endpoint) -> RequestRefusedError:
    """Make the error for a refusal, with what fixes it; keys are removed from the server's text."""
    return RequestRefusedError(_described(refusal, endpoint), refusal)


def _described(refusal: Refusal, endpoint: Endpoint) -> ModelError:
    fault = refusal.fault
    if refusal.status == PROXY_LOGIN_REQUIRED and (proxy := endpoint.network.proxy_for(endpoint.base_url)):
        return ModelError(fault, f"no connection to {endpoint}: {login_problem(proxy)}")
    if 100 <= refusal.status < 400 and refusal.status != 200:  # noqa: PLR2004
        message = f"{endpoint} answered with status {refusal.status}, not with a reply"
        return ModelError(fault, message, hint=f"check {endpoint.url_setting}", is_wrong_server=True)
    status = f" (status {refusal.status})" if refusal.status >= 400 else ""  # noqa: PLR2004
    if refusal.page is not None and fault in {ModelFault.REJECTED, ModelFault.CREDENTIALS}:
        named = f" titled {redact(refusal.page, endpoint)!r}" if refusal.page else ""
        message = f"{endpoint} answered with a web page{named}, not with a model's reply{status}: {refusal.url}"
        return ModelError(fault, message, hint=url_hint(endpoint))
    if fault is ModelFault.REJECTED and refusal.status in _NO_SUCH_PATH and refusal.cure is None:
        words = f": {redact(refusal.message, endpoint)}" if refusal.message else ""
        message = f"{endpoint} has nothing at {refusal.url}{status}{words}"
        return ModelError(fault, message, hint=url_hint(endpoint))
    message = f"{endpoint} {_verb(refusal, endpoint)}{status}"
    # Servers quote the key they refuse, so their text about it is left out.
    if (fault is not ModelFault.CREDENTIALS or refusal.cure is NO_CREDIT) and refusal.message:
        message += f": {redact(refusal.message, endpoint)}"
    return ModelError(fault, message, hint=_hint(fault, endpoint, refusal))


def unreachable(endpoint: Endpoint, why: str) -> ModelError:
    """Make the error for a connection that failed or broke; a login that a proxy refuses is not retried."""
    proxy = endpoint.network.proxy_for(endpoint.base_url)
    if proxy is not None and why.startswith(str(PROXY_LOGIN_REQUIRED)):
        return ModelError(ModelFault.REJECTED, f"no connection to {endpoint}: {login_problem(proxy)}")
    if proxy is not None:
        message = f"no connection to {endpoint} through {proxy}: {redact(why, endpoint)}"
        return ModelError(ModelFault.TRANSPORT, message, hint=f"check {proxy.variable}, and that the proxy runs")
    hint = f"check the network, and that {endpoint.url_setting} names a server that runs"
    hint = network_hint(endpoint) if endpoint.is_default else hint
    return ModelError(ModelFault.TRANSPORT, f"no connection to {endpoint}: {redact(why, endpoint)}", hint=hint)


def redact(text: str, endpoint: Endpoint) -> str:
    """Remove the key, and whatever looks like one, from a text; shorten it to one line."""
    for spelling in _spellings(endpoint.secret.get_secret_value().strip()):
        text = text.replace(spelling, "***")
    text = single_line(_KEY_LIKE.sub("***", repair_text(text)))
    return text if len(text) <= MESSAGE_CHARS else text[:MESSAGE_CHARS] + "..."


def _spellings(secret: str) -> tuple[str, ...]:
    """Return a key in all forms in which servers and proxies may quote it."""
    if len(secret) < MIN_KEY_CHARS:
        return (secret,) if secret else ()
    raw = secret.encode()
    # Within a longer base64 text, the first and last letters of the key depend on its neighbours.
    coded = (base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")[2 * shift : -1] for shift in range(3))
    return (secret, quote(secret, safe=""), raw.hex(), raw.hex().upper(), *coded)


def retry_after(headers: httpx2.Headers) -> float | None:
    """Read how long to wait, in seconds: milliseconds, seconds or an HTTP date (RFC 9110, 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    until = _date(value)
    if until is None:
        return None
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


_VERBS: Mapping[ModelFault, str] = {
    ModelFault.TRANSPORT: "broke off",
    ModelFault.STALLED: "fell silent",
    ModelFault.RATE_LIMITED: "asks for fewer requests",
    ModelFault.OVERLOADED: "is overloaded or failing",
    ModelFault.CONTEXT_EXCEEDED: "says that the request is longer than the model's context",
    ModelFault.CREDENTIALS: "refused the key",
    ModelFault.UNKNOWN_MODEL: "does not know the model",
    ModelFault.OVERSIZED: "sent more than is read",
    ModelFault.STALE_REASONING: "refused reasoning of an earlier turn",
    ModelFault.UNSUPPORTED: "rejected the request",
    ModelFault.REJECTED: "rejected the request",
}


def _verb(refusal: Refusal, endpoint: Endpoint) -> str:
    if refusal.cure is NO_CREDIT:
        return "refused the request for lack of credit"
    is_without_key = not endpoint.secret.get_secret_value().strip()
    if refusal.fault is ModelFault.CREDENTIALS and is_without_key:
        return "needs a key, and none is set"
    return _VERBS[refusal.fault]


def _hint(fault: ModelFault, endpoint: Endpoint, refusal: Refusal) -> str:
    if refusal.cure is not None:
        return refusal.cure.hint
    match fault:
        case ModelFault.CREDENTIALS:
            return _key_hint(endpoint)
        case ModelFault.UNKNOWN_MODEL:
            return "see what the provider has: explorer models; then --model NAME"
        case ModelFault.RATE_LIMITED | ModelFault.OVERLOADED:
            return f"try again {_when(refusal.retry_after_s or 0.0)}; the run can be resumed"
        case ModelFault.REJECTED:
            return f"check {endpoint.url_setting} and the model's name"
        case _:
            return ""


def _key_hint(endpoint: Endpoint) -> str:
    key = endpoint.secret.get_secret_value().strip()
    if not key:
        return f"set {endpoint.key_setting}, or go without a model: --model offline"
    usual = f"check {endpoint.key_setting}, or go without a key: --model offline"
    return foreign_key_hint(key, endpoint.key_setting) or usual


def _when(seconds: float) -> str:
    """Return when to try again: a server may ask for days."""
    if seconds < 2 * MINUTE_S:
        return "later"
    return f"in {seconds / MINUTE_S:.0f} minutes" if seconds < 2 * HOUR_S else f"in {seconds / HOUR_S:.0f} hours"


def words_of_page(text: str) -> str:
    """Return the text of an error page."""
    without_blocks = re.sub(r"(?is)<(script|style)\b.*?</\1\s*>", " ", text[:20_000])
    return single_line(re.sub(r"<[^>]*>", " ", without_blocks), MESSAGE_CHARS)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and 0 <= number < float("inf") else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
