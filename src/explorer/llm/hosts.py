"""The owner of a server, by its URL. It imports no client, because commands that only list runs need it too."""

from urllib.parse import urlsplit

ANTHROPIC = "anthropic"
ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_RESPONSES = "openai-responses"
OPENAI_CHAT = "openai-chat"
OPENAI_TURNS = frozenset({OPENAI_CHAT, OPENAI_RESPONSES})
"""The `provider` of turns from a server of OpenAI's kind, for each of its APIs."""

OFFICIAL_HOST = "api.openai.com"
OPENAI_URL = f"https://{OFFICIAL_HOST}/v1"


def is_official(base_url: str) -> bool:
    """Return whether a URL is OpenAI's own, regional hosts included."""
    return is_host(base_url, OFFICIAL_HOST)


def is_host(base_url: str, host: str) -> bool:
    """Return whether a URL's host is the given one, or ends in it, as regional hosts do."""
    try:
        name = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    return name == host or name.endswith((f".{host}", f"-{host}"))
