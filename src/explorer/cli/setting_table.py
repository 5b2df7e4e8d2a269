"""One table of all settings: the configuration, `config show` and the tests are driven by it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
NO_LIMIT = "none"
ROLE = re.compile(r"[a-z][a-z0-9_-]*")
MODEL_VARIABLE = "EXPLORER_MODEL_"
"""Followed by a role's name in capitals: the model of that role."""
MODELS_KEY = "models"  # the table of models by role in a configuration file

Parse = Callable[[str], object]


@dataclass(frozen=True)
class Setting:
    """Where one setting can be written, and how it is read."""

    name: str
    """Its place in `Settings`, with dots."""
    variable: str
    key: str
    """In a configuration file, with dots; empty for what must not stand in one."""
    help: str
    parse: Parse
    """Raises ValueError when the text is not `allowed`."""
    allowed: str
    flag: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return self.name.startswith("secrets.")


def text(raw: str) -> str:
    """Any words on one line."""
    if not raw.isprintable():
        raise ValueError(raw)
    return raw.strip()


def folder(raw: str) -> Path:
    """A path, with `~` expanded."""
    if "\0" in raw:
        raise ValueError(raw)
    return Path(raw).expanduser()


def whole(raw: str) -> int:
    """A whole number; `_` may part its digits."""
    if re.fullmatch(r"[0-9][0-9_]*", raw) is None:
        raise ValueError(raw)
    return int(raw)


def whole_or_none(raw: str) -> int | None:
    """A whole number, or no limit."""
    return None if raw.lower() == NO_LIMIT else whole(raw)


def money_or_none(raw: str) -> float | None:
    """US dollars, or no limit."""
    return None if raw.lower() == NO_LIMIT else _amount(raw)


def time_or_none(raw: str) -> float | None:
    """Seconds of `90`, `90s`, `10m` or `2h`, or no limit."""
    if raw.lower() == NO_LIMIT:
        return None
    match = TIME.fullmatch(raw.lower())
    if match is None:
        raise ValueError(raw)
    return float(match[1]) * SECONDS[match[2]]


def price(raw: str) -> dict[str, float]:
    """`3/15`: US dollars per million tokens, in and out."""
    inward, slash, outward = raw.partition("/")
    if not slash:
        raise ValueError(raw)
    return {"input_usd": _amount(inward), "output_usd": _amount(outward)}


def hosts(raw: str) -> tuple[str, ...]:
    """Host names, parted by commas."""
    names = tuple(name.strip().lower() for name in raw.split(",") if name.strip())
    if any(re.fullmatch(r"[\w.:\[\]-]+", name) is None for name in names):
        raise ValueError(raw)
    return names


def url(raw: str) -> str:
    """A base URL, without a slash at its end."""
    parts = urlsplit(raw)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not raw.isprintable() or " " in raw:
        raise ValueError(raw)
    return raw.rstrip("/")


def secret(raw: str) -> str:
    """A key: printable, in one piece. Anything else would break, or smuggle, a header."""
    if not raw.isascii() or not raw.isprintable() or " " in raw:
        raise ValueError
    return raw


def _amount(raw: str) -> float:
    number = raw.strip().removeprefix("$")
    if re.fullmatch(r"\d+(\.\d+)?|\.\d+", number) is None:
        raise ValueError(raw)
    return float(number)


ANY_TEXT = "words on one line"
A_PATH = "a path"
COUNT = "a whole number, 1 or more"
COUNT_OR_NONE = f"{COUNT}, or `{NO_LIMIT}`"
A_URL = "a URL that starts with http:// or https://"
A_KEY = "a key in one piece: no spaces, no line breaks"

TABLE: tuple[Setting, ...] = (
    Setting(
        "model",
        "EXPLORER_MODEL",
        "model",
        "auto, offline, anthropic:NAME, openai:NAME, or a bare NAME",
        text,
        ANY_TEXT,
        "--model",
    ),
    Setting("workspace", "EXPLORER_WORKSPACE", "workspace", "Folder of the runs", folder, A_PATH, "--workspace"),
    Setting(
        "roles_dir",
        "EXPLORER_ROLES_DIR",
        "roles_dir",
        "Your role files, over the built-in ones",
        folder,
        A_PATH,
        "--roles",
    ),
    Setting(
        "language",
        "EXPLORER_LANG",
        "lang",
        "Language of the report; empty: the question's",
        text,
        ANY_TEXT,
        "--lang",
    ),
    Setting(
        "price",
        "EXPLORER_PRICE",
        "price",
        "US dollars per million tokens, in/out, for models without a known price",
        price,
        "two amounts in US dollars, like 3/15",
    ),
    Setting(
        "max_output_tokens",
        "EXPLORER_MAX_OUTPUT_TOKENS",
        "max_output_tokens",
        "Tokens of one reply of a model",
        whole,
        "a whole number, 1024 or more",
    ),
    Setting(
        "limits.max_steps",
        "EXPLORER_MAX_STEPS",
        "limits.max_steps",
        "Model turns of all agents together",
        whole_or_none,
        COUNT_OR_NONE,
        "--max-steps",
    ),
    Setting(
        "limits.max_cost_usd",
        "EXPLORER_MAX_COST",
        "limits.max_cost",
        "US dollars of all agents together",
        money_or_none,
        f"US dollars above 0, like 0.50, or `{NO_LIMIT}`",
        "--max-cost",
    ),
    Setting(
        "limits.max_tokens",
        "EXPLORER_MAX_TOKENS",
        "limits.max_tokens",
        "Input and output tokens of all agents together",
        whole_or_none,
        COUNT_OR_NONE,
        "--max-tokens",
    ),
    Setting(
        "limits.max_tool_calls",
        "EXPLORER_MAX_TOOL_CALLS",
        "limits.max_tool_calls",
        "Tool calls of all agents together",
        whole_or_none,
        COUNT_OR_NONE,
        "--max-tool-calls",
    ),
    Setting(
        "limits.max_time_s",
        "EXPLORER_MAX_TIME",
        "limits.max_time",
        "Wall-clock time: 90, 90s, 10m, 2h",
        time_or_none,
        f"a time above 0, like 90, 90s, 10m or 2h, or `{NO_LIMIT}`",
        "--max-time",
    ),
    Setting(
        "limits.max_agents",
        "EXPLORER_MAX_AGENTS",
        "limits.max_agents",
        "Helpers a run may start",
        whole,
        "a whole number, 0 or more",
        "--max-agents",
    ),
    Setting(
        "limits.max_parallel_agents",
        "EXPLORER_MAX_PARALLEL_AGENTS",
        "limits.max_parallel_agents",
        "Helpers that work at once",
        whole,
        COUNT,
    ),
    Setting("secrets.anthropic_key", "ANTHROPIC_API_KEY", "", "Key for Anthropic's models", secret, A_KEY),
    Setting(
        "secrets.openai_key",
        "OPENAI_API_KEY",
        "",
        "Key for OpenAI's models, or for the compatible server",
        secret,
        A_KEY,
    ),
    Setting(
        "secrets.tavily_key",
        "TAVILY_API_KEY",
        "",
        "Key for Tavily's web search; without one its keyless mode is used",
        secret,
        A_KEY,
    ),
    Setting(
        "services.anthropic_url",
        "ANTHROPIC_BASE_URL",
        "services.anthropic_url",
        "Anthropic's API, or a proxy of it",
        url,
        A_URL,
    ),
    Setting(
        "services.openai_url",
        "OPENAI_BASE_URL",
        "services.openai_url",
        "OpenAI's API, or a compatible server like http://127.0.0.1:11434/v1",
        url,
        A_URL,
    ),
    Setting(
        "services.hn_api_url",
        "EXPLORER_HN_API_URL",
        "services.hn_api_url",
        "Hacker News API",
        url,
        A_URL,
    ),
    Setting(
        "services.hn_search_url",
        "EXPLORER_HN_SEARCH_URL",
        "services.hn_search_url",
        "Hacker News search API",
        url,
        A_URL,
    ),
    Setting("services.tavily_url", "EXPLORER_TAVILY_URL", "services.tavily_url", "Tavily's API", url, A_URL),
    Setting(
        "services.reader_url",
        "EXPLORER_READER_URL",
        "services.reader_url",
        "A Jina-style reader to read pages through; empty: pages are read directly",
        url,
        A_URL,
    ),
    Setting(
        "services.allow_hosts",
        "EXPLORER_ALLOW_HOSTS",
        "services.allow_hosts",
        "Hosts whose private or loopback addresses may be fetched, parted by commas",
        hosts,
        "host names parted by commas, like 127.0.0.1,intranet.example",
    ),
)
