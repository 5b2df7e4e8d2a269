"""The end of a run, sent where its user wants to hear of it: the desktop, or a URL with a signature.

Whatever becomes of it, the run's exit code stays.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from urllib.parse import urlsplit

from explorer.cli.screens.output import INTERRUPTED, TERMINATED, say
from explorer.observe.command_result import CommandResult
from explorer.observe.formatting import one_line
from explorer.schema.errors import ConfigError, ExplorerError
from explorer.schema.network import Network
from explorer.schema.settings import Settings
from explorer.schema.version import __version__

DESKTOP = "desktop"
EVENT = "run.ended"
PREFIX = "whsec_"
WORDS_CHARS = 200
ATTEMPT_S = 10.0
TOTAL_S = 40.0
STOPPED_S = 5.0
"""The same for a run that was interrupted: whoever stopped it waits."""
RETRIES = 3
ANSWER_BYTES = 10_000
REPEATED = frozenset({408, 425, 429})
"""Statuses besides 5xx after which a receiver may take it later."""
DESKTOP_S = 10
SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")
"""AppleScript that reads its words as arguments, so that none of them is a part of the script."""


@dataclass(frozen=True)
class Notifier:
    """Where the end of a run is sent."""

    targets: Sequence[str]
    secret: str
    """The secret of signatures, as it is set; empty: none are made."""
    network: Network

    @classmethod
    def of(cls, targets: Sequence[str], settings: Settings) -> "Notifier":
        """Return what sends to the targets of a command.

        Raises:
            ConfigError: A target is none, or the secret cannot be used.
        """
        for target in targets:
            _check(target)
        secret = settings.secrets.webhook_secret.get_secret_value()
        if targets:
            _key_of(secret)
        return cls(tuple(dict.fromkeys(targets)), secret, settings.network)

    def send(self, question: str, outcome: CommandResult) -> None:
        """Send the end of a run to all targets; a failure is one line on stderr."""
        for target in self.targets:
            name = target if target == DESKTOP else _shown(target)
            try:
                if target == DESKTOP:
                    problem = _on_desktop(question, outcome)
                else:
                    problem = asyncio.run(self._post(target, body_of(question, outcome, datetime.now(UTC)), outcome))
            except (ExplorerError, KeyboardInterrupt) as error:
                problem = str(error) or "interrupted"
            if problem:
                say(f"not notified: {name}: {one_line(problem, WORDS_CHARS)}")

    async def _post(self, url: str, body: bytes, outcome: CommandResult) -> str:
        """Send a webhook, again where that can help; return what went wrong, empty when it was taken."""
        from explorer.network.client import GuardedClient  # noqa: PLC0415 - slow to import, and few runs need it
        from explorer.network.exchange import Attempt, ExchangeError, HttpRequest, with_retries  # noqa: PLC0415
        from explorer.network.guard import Guard  # noqa: PLC0415 - the same

        is_stopped = outcome.exit_code in {INTERRUPTED, TERMINATED}
        identifier = f"msg_{secrets.token_hex(12)}"
        # The user named the address, which may be a private one. Redirects are not followed.
        guard = Guard([urlsplit(url).hostname or ""])
        client = GuardedClient(guard, f"explorer/{__version__}", self.network, seconds=ATTEMPT_S)

        async def attempt() -> Attempt[str]:
            headers = headers_of(identifier, int(time.time()), body, self.secret)
            try:
                answer = await client.send(HttpRequest("POST", url, headers, body, ANSWER_BYTES))
            except ExchangeError as error:
                return Attempt(str(error) or error.kind, may_repeat=True)
            is_taken = 200 <= answer.status < 300  # noqa: PLR2004 - HTTP's own classes
            may_repeat = answer.status >= 500 or answer.status in REPEATED  # noqa: PLR2004 - the same
            return Attempt("" if is_taken else f"it answered {answer.status}", may_repeat, answer.retry_after_s)

        try:
            async with asyncio.timeout(STOPPED_S if is_stopped else TOTAL_S):
                return await with_retries(attempt, 0 if is_stopped else RETRIES)
        except TimeoutError:
            return "it did not answer in time"
        finally:
            await client.aclose()


def body_of(question: str, outcome: CommandResult, now: datetime) -> bytes:
    """Return the body of a webhook; docs/outputs.md has its fields."""
    data = {
        "question": question,
        "run_id": outcome.run_id,
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "reason": outcome.reason,
        "report": outcome.report,
        "changes": outcome.changes,
        "cost_usd": outcome.cost_usd,
        "tokens": dict(outcome.tokens).get("total", 0),
        "seconds": round(outcome.seconds, 1),
        "sources": outcome.sources,
        "citations": outcome.citations,
        "verdicts": dict(outcome.verdicts),
        "uncited": outcome.uncited,
        "error": dict(outcome.error) if outcome.error else None,
    }
    shown = {"type": EVENT, "timestamp": now.isoformat(timespec="seconds").replace("+00:00", "Z"), "data": data}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def headers_of(identifier: str, seconds: int, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of one attempt, as Standard Webhooks has them.

    https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    """
    headers = {"Content-Type": "application/json", "webhook-id": identifier, "webhook-timestamp": str(seconds)}
    key = _key_of(secret)
    if key:
        signed = f"{identifier}.{seconds}.".encode() + body
        signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        headers["webhook-signature"] = f"v1,{signature}"
    return headers


def _key_of(secret: str) -> bytes:
    """Return the key in a secret, base64 after `whsec_`; empty without a secret.

    Raises:
        ConfigError: It is none.
    """
    if not secret:
        return b""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if len(key) < 24 or len(key) > 64:  # noqa: PLR2004 - the bounds of the standard
        hint = "make one: echo whsec_$(head -c 32 /dev/urandom | base64)"
        raise ConfigError("EXPLORER_WEBHOOK_SECRET is not whsec_ and 24 to 64 bytes in base64", hint=hint)
    return key


def _check(target: str) -> None:
    """Refuse what is no target.

    Raises:
        ConfigError: It is neither `desktop` nor a URL.
    """
    try:
        parts = urlsplit(target)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        is_url = is_url and "@" not in parts.netloc and target.isprintable() and " " not in target
    except ValueError:
        is_url = False
    if target != DESKTOP and not is_url:
        raise ConfigError(
            f"--notify does not take {one_line(target, 60)!r}", hint="give: --notify desktop, or --notify https://..."
        )


def _shown(url: str) -> str:
    """Return the part of an address that has no key in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}"


def _on_desktop(question: str, outcome: CommandResult) -> str:
    """Show a notification on the desktop; return what went wrong, empty when it was shown."""
    title = f"explorer: {outcome.status.replace('_', ' ')}"
    words = one_line(question, WORDS_CHARS)
    if outcome.reason:
        words += f" ({one_line(outcome.reason, WORDS_CHARS)})"
    if shutil.which("notify-send"):
        # What it shows may be markup, with links and images.
        command = ["notify-send", "--app-name=explorer", "--", title, escape(words, quote=False)]
    elif shutil.which("osascript"):
        command = ["osascript", *(word for line in SCRIPT for word in ("-e", line)), title, words]
    else:
        return "neither notify-send nor osascript is there (apt install libnotify-bin)"
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and arguments
            command, capture_output=True, timeout=DESKTOP_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip() or "it could not be shown"
