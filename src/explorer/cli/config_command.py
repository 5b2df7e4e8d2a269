"""`config show`: every setting, its value, and where it comes from."""

from dataclasses import asdict

from explorer.cli.options import COMMON, CommonOptions
from explorer.cli.output import emit, emit_json
from explorer.cli.reading import configured
from explorer.cli.table import aligned


def show(*, options: CommonOptions = COMMON) -> int:
    """Show every setting, its value, and where it comes from; keys only as `set` or `not set`.

    The first that names a setting decides: flags, the environment, .env, explorer.toml,
    the user's config.toml, defaults.
    """
    configuration = configured(options)
    if options.output_format != "text":
        emit_json([asdict(value) for value in configuration.values])
        return 0
    header = ("SETTING", "VARIABLE", "VALUE", "ORIGIN", "WHAT IT IS")
    rows = [
        (value.name, value.variable, written(value.value), value.origin, value.help) for value in configuration.values
    ]
    emit(aligned(header, rows))
    return 0


def written(value: object) -> str:
    """A value as one would read it aloud."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return ",".join(f"{name}={item}" for name, item in value.items())  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return "/".join(str(item) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)
