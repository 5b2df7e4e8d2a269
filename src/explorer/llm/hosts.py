"""Whose server a URL is of, without importing a client: commands that only list runs ask this too."""

from urllib.parse import urlsplit

OPENAI_RESPONSES = "openai-responses"
OPENAI_CHAT = "openai-chat"
OPENAI_TURNS = frozenset({OPENAI_CHAT, OPENAI_RESPONSES})
"""The `provider` of turns that came from a server of OpenAI's kind, through either of its APIs."""

OFFICIAL_HOST = "api.openai.com"
OPENAI_URL = f"https://{OFFICIAL_HOST}/v1"


def is_official(base_url: str) -> bool:
    """Say whether a URL is OpenAI's own; regional hosts end the same."""
    return is_host(base_url, OFFICIAL_HOST)


def is_host(base_url: str, host: str) -> bool:
    """Say whether a URL's host is the one given, or one below it: regional hosts end the same."""
    try:
        name = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    return name == host or name.endswith((f".{host}", f"-{host}"))
