"""What the log says of a fetch: the host, never the rest of an address, and nothing of a page."""

from urllib.parse import urlsplit

from loguru import logger

from explorer.schema.errors import ToolError
from explorer.sources.http.fetched import Fetched


def logged(fetched: Fetched) -> Fetched:
    """Log an answer and return it; one with an error status is a degradation."""
    way = ", from the cache" if fetched.from_cache else ""
    level = "WARNING" if fetched.problem else "INFO"
    host = urlsplit(fetched.url).hostname
    logger.log(level, "source fetched: {} status {}, {} bytes{}", host, fetched.status, len(fetched.body), way)
    return fetched


def logged_failure(host: str, error: ToolError) -> ToolError:
    """Log that no answer came and return the error, whose words are not shown: they name the whole address."""
    logger.warning("source not fetched: {} ({})", host, type(error.__cause__ or error).__name__)
    return error
