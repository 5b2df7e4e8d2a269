"""A mistyped command must not become a paid question: the words by which the two are told apart."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from explorer.cli.help_text import COMMANDS
from explorer.schema.errors import ConfigError

SUBCOMMANDS: Mapping[str, tuple[str, ...]] = {
    "config": ("show",),
    "mcp": ("list", "add", "test", "serve", "token"),
    "runs": ("list", "rm", "gc", "export", "import"),
    "queue": ("cancel", "retry", "drain", "start", "stop", "prune"),
    "fleet": ("status", "limit"),
    "report": ("list", "show"),
    "presets": ("list", "show"),
    "skills": ("list", "show", "validate", "new"),
    "watch-topic": ("add", "list", "show", "remove", "run"),
    "completion": ("bash", "zsh", "fish"),
}
"""Words that may follow a command, by command."""
TAKES_RUN = frozenset(
    {"repl", "resume", "fork", "steer", "stop", "watch", "show", "diff", "report", "verify", "grep", "doctor"}
)
"""Commands whose first word is a run; more words may follow."""
TAKES_ANYTHING = frozenset({"grep", "ask", "help"})
"""Commands behind which one bare word is the usual thing."""

COMMAND_LIKE: Mapping[str, str] = {
    "init": "",
    "login": "doctor",
    "logout": "",
    "auth": "doctor",
    "whoami": "",
    "setup": "doctor",
    "configure": "config show",
    "configuration": "config show",
    "settings": "config show",
    "set": "config show",
    "get": "config show",
    "env": "config show",
    "serve": "",
    "server": "",
    "daemon": "",
    "schedule": "watch-topic",
    "cron": "watch-topic",
    "web": "",
    "ui": "",
    "gui": "",
    "chat": "repl",
    "shell": "",
    "exec": "",
    "run": "ask",
    "start": "ask",
    "explore": "ask",
    "query": "ask",
    "question": "ask",
    "new": "ask",
    "continue": "resume",
    "restart": "resume",
    "retry": "resume",
    "followup": "resume",
    "pause": "stop",
    "cancel": "stop",
    "abort": "stop",
    "kill": "stop",
    "quit": "stop",
    "exit": "stop",
    "tail": "watch",
    "follow": "watch",
    "attach": "watch",
    "logs": "show",
    "log": "show",
    "status": "runs",
    "history": "runs",
    "list": "runs",
    "ls": "runs",
    "ps": "runs",
    "sessions": "runs",
    "session": "runs",
    "info": "show",
    "inspect": "show",
    "view": "show",
    "cat": "report",
    "open": "report",
    "print": "report",
    "cost": "show --costs",
    "costs": "show --costs",
    "usage": "show --costs",
    "search": "grep",
    "find": "grep",
    "delete": "runs rm",
    "remove": "runs rm",
    "rm": "runs rm",
    "clean": "runs gc",
    "clear": "runs gc",
    "prune": "runs gc",
    "gc": "runs gc",
    "cache": "runs gc",
    "export": "runs export",
    "import": "runs import",
    "check": "doctor",
    "test": "doctor",
    "ping": "doctor",
    "install": "",
    "uninstall": "",
    "update": "",
    "upgrade": "",
    "plugin": "",
    "plugins": "",
    "completions": "completion",
    "preset": "presets list",
    "roles": "agents",
    "role": "agents",
    "providers": "models",
    "keys": "doctor",
    "key": "doctor",
    "library": "report list",
    "evaluate": "eval",
    "evaluation": "eval",
    "example": "demo",
    "sample": "demo",
    "tutorial": "demo",
}
"""Commands of other programs, each with the one of ours that does it; empty: none does."""

ENGLISH_WORDS = frozenset(
    """
    agent events aspects accents models model modes motels modem modern demos memo demon tool pools fools cools
    toots run rung rune runes ruins runny guns suns buns nuns puns rust rubs ruts rugs rund
    shows shown shop shot shoe shoes shout how slow snow stow sow chow shore who
    stops step steps shop stomp stoop strop top atop
    watches match catch batch patch hatch latch swatch watched water
    forks work works form fort ford for fora folk pork cork york forge
    steel steers steep sheer stern seer street steam
    grip grey grew prep crop drop greek green group greed greet step
    cliff riff tiff stiff differ
    reports reported reporter deport resort rapport export import support effort
    resumes resumed rescue resale rename revue reuse assume presume
    verity very versify clarify
    doctors factor docker donor actor sector vector proctor rector
    crust trusts trusty truss thrust tryst
    confit confide coffin
    queues queued fleets feet flee sleet library evaluate evaluation
    asks mask task tasks bask flask as asking
    help helps held heap kelp yelp hemp whelp helped
    version versions vision aversion
    chat set get web new list log view open print search find test check start run key keys export import cache
    status history session sessions install update follow cost costs usage clean clear example sample server shell
    question query roles role cat tail kill exit info ping explore continue pause settings import remove delete inspect
    """.split()  # noqa: SIM905 - a list of these would be a page long
)
"""Words of the language that are commands elsewhere or close to one of ours: a question may well begin with them."""


LONG_WORD_CHARS = 6
"""Words from this length on may be two edits away from a command."""
MAX_WORD_CHARS = 20
COMMAND_WORD = re.compile(r"[a-z][a-z0-9_-]*")
LIKE_A_RUN = re.compile(r"latest|(.*/)?\d{8}(-\S*)?/?|(.*/)?\d{8}-\d{6}-\S*", re.DOTALL)
LIKE_A_PLACE = re.compile(r"[.~/]\S*|\S+/\S*|https?:\S+|[\w.-]+:\d+|\d{2,5}|\S+=\S*|\S+\.(toml|md|json|txt|env|py)")
"""A path, an address, a port, a setting: nothing that a question's second word is."""
GENERIC_WORDS = ("help", "version")


@dataclass(frozen=True)
class Meant:
    """What a first word was probably meant to be."""

    command: str
    """Command with its flags or words; empty: there is nothing like it."""
    is_exact: bool = False
    """Whether the word is a command in the wrong place."""


def edit_distance(left: str, right: str) -> int:
    """Return the Damerau-Levenshtein distance (optimal string alignment): a swap of two neighbours is one edit."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def closest(word: str, known: Iterable[str], limit: int) -> str | None:
    """Return the known word at most `limit` edits away, the nearest first; None when there is none."""
    distances = sorted((edit_distance(word, name), name) for name in known)
    return distances[0][1] if distances and distances[0][0] <= limit else None


def refuse_mistyped_command(words: Sequence[str]) -> None:
    """Refuse a question that looks like a command with a slip in it, or like one that there is not.

    Raises:
        ConfigError: It looks like a command; the hint says which, and how to ask it nevertheless.
    """
    meant = meant_command(words)
    if meant is None:
        return
    first = words[0].strip()
    anyway = f"to ask it as a question: explorer ask {' '.join(_quoted(word) for word in words)}"
    if meant.is_exact:
        raise ConfigError(
            f"`{first}` is a command, and must come first", hint=f"write: explorer {first} [FLAGS]; {anyway}"
        )
    if meant.command and first.lower() not in COMMAND_LIKE:
        message = f"`{first}` looks like a mistyped command; it was not asked as a question"
        raise ConfigError(message, hint=f"did you mean `explorer {meant.command}`? Or {anyway}")
    message = f"there is no such command: `{first}`; it was not asked as a question"
    way = f"the closest: explorer {meant.command}" if meant.command else "all commands: explorer --help"
    raise ConfigError(message, hint=f"{way}; {anyway}")


def _quoted(word: str) -> str:
    return f'"{word}"' if len(word.split()) != 1 else word


def meant_command(words: Sequence[str]) -> Meant | None:
    """Return the command that a command line's words were meant to be; None: a question.

    Words in quotes arrive as one and are a question. Of bare words, the first is judged together with what follows:
    a command line is short, and its second word is a run, a path or a command's own word; a question is prose.
    """
    first = words[0].strip().lower() if words else ""
    if len(first) > MAX_WORD_CHARS or not COMMAND_WORD.fullmatch(first) or any("?" in word for word in words):
        return None
    rest = [word.strip() for word in words[1:]]
    if first in GENERIC_WORDS:
        return Meant(first) if len(rest) <= (first == "help") else None
    if first in COMMANDS:
        return Meant(first, is_exact=True) if first == "ask" or _fits(first, rest) else None
    near = closest(first, (*COMMANDS, *GENERIC_WORDS), 2 if len(first) >= LONG_WORD_CHARS else 1)
    if near and _is_slip(first, near, rest):
        return Meant(near)
    if first in COMMAND_LIKE and _is_command_line(first, rest):
        return Meant(COMMAND_LIKE[first])
    return None


def _is_slip(first: str, near: str, rest: Sequence[str]) -> bool:
    """Return whether the words fit the command that the first one is close to."""
    if first in ENGLISH_WORDS:
        # `reports show that ...` is prose, `reports show NAME` is not.
        return _fits(near, rest, is_word=True)
    return _fits(near, rest)


def _fits(command: str, rest: Sequence[str], *, is_word: bool = False) -> bool:
    """Return whether what follows is what the command takes.

    Args:
        command: One of ours.
        rest: The words behind it.
        is_word: Whether the first word is one of the language, so that only what cannot be prose counts.
    """
    if not rest:
        return True
    second, is_short = rest[0].lower(), len(rest) == 1
    known = SUBCOMMANDS.get(command, ())
    if LIKE_A_RUN.fullmatch(second):
        return is_short or command in TAKES_RUN
    if second in known and not is_word:
        return True
    return is_short and (second in {*known, "list", "show", "ls"} or (not is_word and _is_argument(command, second)))


def _is_argument(command: str, word: str) -> bool:
    """Return whether the one word behind a command is one that it takes, and hardly one of a question."""
    if command in TAKES_ANYTHING or closest(word, SUBCOMMANDS.get(command, ()), 1):
        return True
    # `resmue "go deeper into the second point"`: nobody writes half of a question in quotes.
    return len(word.split()) > 1 or bool(LIKE_A_PLACE.fullmatch(word))


def _is_command_line(first: str, rest: Sequence[str]) -> bool:
    """Return whether a word that is a command elsewhere is meant as one here."""
    if not rest:
        return True
    if len(rest) > 1:
        return False
    second = rest[0].lower()
    is_of_ours = second in {*COMMANDS, *GENERIC_WORDS} or f"{second}s" in COMMANDS
    is_strict = first not in ENGLISH_WORDS
    return is_of_ours or bool(LIKE_A_PLACE.fullmatch(second) or LIKE_A_RUN.fullmatch(second)) or is_strict
