"""`config show`: every setting, its value, and where it comes from."""

from dataclasses import asdict

from explorer.cli.screens.output import aligned, emit_json, emit_page, say
from explorer.cli.settings.configuration import Value, configured
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.schema.model_options import EVERY_ROLE
from explorer.schema.setting import NO_LIMIT


def show(*, options: CommonOptions = COMMON) -> int:
    """Show every setting, its value, and where it comes from; keys only as `set` or `not set`.

    The first that names a setting decides: flags, the environment, .env, explorer.toml,
    the user's config.toml, defaults. IN A FILE is the name that a .toml file takes; keys have no such name.
    What the folder's files say and is not in force follows, with the reason.
    """
    configuration = configured(options, lambda _configuration, _options: False)
    if options.output_format != "text":
        emit_json([asdict(value) for value in configuration.values])
        return 0
    header = ("IN A FILE", "VARIABLE", "VALUE", "ORIGIN", "WHAT IT IS")
    rows = [
        (value.key or "-", value.variable, _written(value), value.origin, value.help) for value in configuration.values
    ]
    emit_page(aligned(header, rows))
    ignored = [(one.origin, one.value, one.why) for value in configuration.values for one in value.ignored]
    if ignored:
        emit_page("\n" + aligned(("NOT IN FORCE", "VALUE", "WHY"), ignored))
    if configuration.withheld and not options.quiet:
        say("  → see what they change, and allow it: explorer trust")
    return 0


def _written(value: Value) -> str:
    if value.value is None and value.name.startswith("limits."):
        return NO_LIMIT
    return written(value.value)


def written(value: object) -> str:
    """Return a value as a file takes it; `-` for what is empty."""
    if value is None or value in ("", [], {}):
        return "-"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        # What holds for every role is written without a role's name.
        return ",".join(f"{name}={item}".removeprefix(f"{EVERY_ROLE}=") for name, item in value.items())  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return "/".join(str(item) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)
