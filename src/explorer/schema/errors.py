"""Errors, sorted by who can fix them.

    ExplorerError                 every error of ours; `exit_code` is what the command line ends with
    ├── ConfigError        (2)    the user fixes it: a setting, a flag, a role file
    │   └── CredentialsError (4)  a key is missing or was refused
    ├── NotFoundError      (5)    no such run, role, file or report
    ├── StorageError       (1)    the disk is full, read-only or damaged; nothing acknowledged is lost
    │   ├── RunLockedError (2)    another process works on this run
    │   └── JournalDamagedError   valid records come after a damaged one: refused, never guessed
    ├── ModelError         (6)    the provider or the network; `is_retryable` says whether asking again can help
    ├── PausedError        (6)    a limit shared with other runs is reached; the run can be resumed later
    └── ToolError                 text written for the model, which fixes it by calling differently
        ├── RefusedCallError      the call itself is wrong or not allowed: no service was asked
        └── NoSuchThingError      the service answered: it has no such thing

A bug is none of these: it is raised to the top, with its traceback.
"""

from collections.abc import Awaitable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import LiteralString, Self, TypeVar

from explorer.text.rendering import ModelText, Value, fenced, own, without_marks

Kind = TypeVar("Kind", bound=BaseException)
T = TypeVar("T")
NO_DATA: Mapping[str, object] = MappingProxyType({})


class ExplorerError(Exception):
    """An error with a line for people and, if there is one, the command that fixes it."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        """What happened and why, in one line."""
        self.hint = hint
        """What to do about it: a command or a setting; empty when there is nothing to do."""


class ConfigError(ExplorerError):
    """A setting, a flag or a role file that cannot be used as it is."""

    exit_code = 2


class CredentialsError(ConfigError):
    """A key that is missing, or that the provider refused."""

    exit_code = 4


class PortInUseError(ConfigError):
    """The port that is to be listened on belongs to another program."""

    exit_code = 4


class NotFoundError(ExplorerError):
    """Something named by the user does not exist."""

    exit_code = 5


class StorageError(ExplorerError):
    """The disk is full, read-only, or failing. What was acknowledged before is intact."""


class RunLockedError(StorageError):
    """Another process works on this run."""

    exit_code = 2


class JournalDamagedError(StorageError):
    """A record in the middle of a journal is damaged; reading on would mean guessing."""


class JournalVersionError(JournalDamagedError):
    """A newer explorer wrote this journal."""


class ModelFault(StrEnum):
    """Kinds of model failure, each with one consequence (see `ModelError`)."""

    TRANSPORT = "transport"
    """Connection refused, reset or cut; a stream without its terminal event; broken JSON on the wire."""
    STALLED = "stalled"
    """Connected, but no content for too long."""
    RATE_LIMITED = "rate_limited"
    """429, or the same said in a body."""
    OVERLOADED = "overloaded"
    """529 or 5xx, or the same said in the middle of a stream."""
    CONTEXT_EXCEEDED = "context_exceeded"
    """The request is longer than the model's window."""
    CREDENTIALS = "credentials"
    """401 or 403."""
    UNKNOWN_MODEL = "unknown_model"
    """The provider does not know the model asked for."""
    UNSUPPORTED = "unsupported"
    """The server or the model does not offer what the settings ask for: another API, another effort."""
    OVERSIZED = "oversized"
    """More came than any reply has; asking again would cost the same again."""
    STALE_REASONING = "stale_reasoning"
    """The provider refuses reasoning of an earlier turn: the messages before it are not the ones it was made after."""
    REJECTED = "rejected"
    """Any other 4xx: the same request will fail again."""


RETRYABLE_FAULTS = frozenset({ModelFault.TRANSPORT, ModelFault.STALLED, ModelFault.RATE_LIMITED, ModelFault.OVERLOADED})


FIRST_ERROR_STATUS = 400
TIMEOUT_STATUSES = frozenset({408, 504, 524})


class ModelError(ExplorerError):
    """A request to a model that brought no turn.

    Nothing of a failed request is kept: no text of it is shown as final, and none of its calls is run.
    """

    exit_code = 6

    def __init__(
        self,
        fault: ModelFault,
        message: str,
        *,
        hint: str = "",
        retry_after_s: float | None = None,
        is_wrong_server: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault
        """The kind, which decides what happens next."""
        self.is_wrong_server = is_wrong_server
        """Whether there seems to be no model server at the address (something else answered, nothing listens, or
        the host is unknown): asking again helps only where a model server has answered before."""
        self.is_closed = False
        """Whether the connection was closed without an answer, as by a wrong address, and by a server that restarts."""
        self.is_outage = fault in RETRYABLE_FAULTS
        """Whether the provider does not answer now, and waiting any longer is not allowed."""
        self.status = 0
        """The HTTP status of the refusal; 0 when there was none."""
        self.code = ""
        """The server's own code for the refusal; empty when it gave none."""
        self.is_unsent = False
        """Whether the request did not reach a server: there was no connection."""
        self.retry_after_s = retry_after_s
        """Seconds the provider asked to wait; None when it said nothing."""
        if fault is ModelFault.CREDENTIALS:
            self.exit_code = 4
        elif fault in {ModelFault.UNKNOWN_MODEL, ModelFault.UNSUPPORTED}:
            self.exit_code = 2

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.fault in RETRYABLE_FAULTS

    @property
    def is_billed(self) -> bool:
        """Whether a provider may bill the attempt: it was sent, and not refused by a status but a time-out."""
        is_refused = self.status >= FIRST_ERROR_STATUS and self.status not in TIMEOUT_STATUSES
        return not self.is_unsent and not is_refused


class PausedError(ExplorerError):
    """A limit that the run shares with others is reached; all so far is on disk."""

    exit_code = 6


class WaitingError(ExplorerError):
    """The run waits for a decision of the user; all so far is on disk, and it is resumed with the decision."""

    exit_code = 7


class ToolError(ExplorerError):
    """A tool cannot do what it was asked; the message is what the model reads, so it says what would work."""

    def __init__(self, message: str, *, hint: str = "", data: Mapping[str, object] = NO_DATA) -> None:
        """Take what happened, as made by `own`; any other text counts as text from outside."""
        super().__init__(without_marks(message) if isinstance(message, ModelText) else message, hint=hint)
        self.words = fenced(message)
        """The message for the model."""
        self.data = data
        """The reason for programs, as JSON: `code` is an `ErrorCode`."""

    @classmethod
    def of(cls, words: LiteralString, /, **values: Value) -> Self:
        """Return an error with words of the program, made by `own`."""
        return cls(own(words, **values))


class RefusedCallError(ToolError):
    """A call that is wrong or not allowed; it was refused before any service was asked."""


class NoSuchThingError(ToolError):
    """The service answered that it has no such thing; asking again brings the same."""


async def or_error(answer: Awaitable[T]) -> T | ToolError:
    """Return an answer, or the error instead of it, for callers that look at several."""
    try:
        return await answer
    except ToolError as error:
        return error


def first_of(errors: BaseExceptionGroup[BaseException], kind: type[Kind]) -> Kind | None:
    """Return the first error of `kind` in nested groups; None when an error of another kind is among them.

    For `except BaseExceptionGroup`, with the `raise` after it: Python 3.11 before 3.11.4 puts what is raised inside
    `except*` into a group again, and callers no longer see which error it is.
    """
    found, others = errors.split(kind)
    if found is None or others is not None:
        return None
    error: BaseException = found
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    assert isinstance(error, kind)
    return error
