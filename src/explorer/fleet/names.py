"""Names that users give: of tenants and runs, and keys that make a question one run."""

from explorer.schema.errors import ConfigError
from explorer.text.sanitize import visible

MAX_NAME_CHARS = 255


def check_name(what: str, name: str) -> None:
    """Check that a name can be stored and shown.

    Args:
        what: What it names, for the error.
        name: The name.

    Raises:
        ConfigError: It is too long, or has characters that are no text.
    """
    if len(name) > MAX_NAME_CHARS:
        raise ConfigError(f"the {what} has {len(name)} characters; the limit is {MAX_NAME_CHARS}", hint="shorten it")
    if name != visible(name) or {"\n", "\t"} & {*name}:
        raise ConfigError(f"the {what} has characters that cannot be stored or shown", hint="use letters and digits")


def may_name_run(name: str) -> bool:
    """Return whether a text may be a run's id or the beginning of one; what may not be is not looked for."""
    return bool(name) and name.isprintable() and len(name) <= MAX_NAME_CHARS
