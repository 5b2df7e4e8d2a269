"""Pages made from the settings as their fields declare them.

`uv run pytest tests/cli/test_settings_pages.py --update-golden` writes them.
"""

import textwrap
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

from cyclopts import Parameter

from explorer.cli.settings.options import GROUPS, AskOptions
from explorer.cli.settings.values import ROLE_MODELS, all_settings
from explorer.schema.setting import Group, Setting, WithoutTrust

ROOT = Path(__file__).parents[1]
BEGIN = "<!-- The tables of settings are made from the fields in schema/settings.py; see tests/settings_pages.py. -->"
END = "<!-- The end of the tables of settings. -->"
EXAMPLE_HEAD = """\
# Copy to `.env` and fill in what you need; everything here is optional.
# Precedence: flags > environment > preset > .env > explorer.toml > ~/.config/explorer/config.toml > defaults.
# `explorer config show` shows every value and where it comes from.
# Proxies and certificates (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR) are read from the
# environment only, not from this file.
# What needs trust takes effect once you have run `explorer trust` in this folder, and again after each change.
"""
EXAMPLE_NOTES = {Group.LIMITS: " (`none` removes one)"}
EXAMPLE_WIDTH = 118
NO_DEFAULT = "none"
WITHOUT_TRUST = {
    WithoutTrust.NO_EFFECT: "no",
    WithoutTrust.LOWERS: "lower",
    WithoutTrust.WORDS: "a name",
    WithoutTrust.MODEL: "same vendor",
    WithoutTrust.TIGHTENS: "stricter",
    WithoutTrust.KEY: "yes",
    WithoutTrust.FULL: "yes",
}
"""What the docs say of a setting in a folder's file."""
FLAG_COLUMN = 27
PAGE_WIDTH = 80


def example_file() -> str:
    """`.env.example`: every variable after a comment, without a value."""
    parts = [EXAMPLE_HEAD]
    for group in Group:
        title = f"# --- {group}{EXAMPLE_NOTES.get(group, '')} "
        parts.append(f"\n{title.ljust(110, '-')}\n")
        for setting in _of(group):
            default = _default(setting)
            is_said = default != NO_DEFAULT or group == Group.LIMITS
            words = f"{_words(setting)}{f' Default: {default}.' if is_said else ''}"
            words += " Needs trust." if setting.without_trust is WithoutTrust.NO_EFFECT else ""
            parts.append(_commented(words, setting.variable))
            if setting.name == "model":
                parts.append(_commented(f"{ROLE_MODELS.help}.", f"{ROLE_MODELS.prefix}SEARCHER"))
    return "".join(parts)


def _commented(words: str, variable: str) -> str:
    lines = textwrap.wrap(words.replace("`", ""), EXAMPLE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines) + f"{variable}=\n"


TABLE_HEAD = "| Variable | In a file | Flag | Default | Without trust | What it is |"


def docs_tables() -> str:
    """The tables of docs/configuration.md, one for each group."""
    parts = [BEGIN, ""]
    for group in Group:
        parts += [f"### {group}", "", TABLE_HEAD, "|---|---|---|---|---|---|"]
        parts += [_row(setting) for setting in _of(group)]
        parts.append("")
    return "\n".join([*parts, END])


def _row(setting: Setting) -> str:
    more = f" [More](#{setting.anchor})." if setting.anchor else ""
    flags = ", ".join(f"`{flag.name}`" for flag in setting.flags)
    key = f"`{setting.key}`" if setting.key else ""
    trust = WITHOUT_TRUST[setting.without_trust]
    return f"| `{setting.variable}` | {key} | {flags} | {_default(setting)} | {trust} | {_words(setting)}{more} |"


def _of(group: Group) -> list[Setting]:
    return [setting for setting in all_settings() if setting.group == group]


def _words(setting: Setting) -> str:
    return " ".join(f"{words}." for words in (setting.help.removesuffix("."), setting.details) if words)


def _default(setting: Setting) -> str:
    if setting.default or setting.is_secret:
        return setting.default or NO_DEFAULT
    value = setting.initial
    if value is None or value in ("", (), {}):
        return NO_DEFAULT
    return str(value) if isinstance(value, int) else f"`{value}`"


def flag_help() -> str:
    """The module with the part of the first help page that lists a question's flags."""
    hints = get_type_hints(AskOptions, include_extras=True)
    parameters = [
        item
        for field in fields(AskOptions)
        for item in get_args(hints[field.name])[1:]
        if isinstance(item, Parameter) and item.show is not False
    ]
    lines: list[str] = []
    for group in GROUPS.values():
        of_group = [parameter for parameter in parameters if parameter.group == (group,)]
        lines += [f"{group.name}:", *(line for parameter in of_group for line in _flag_lines(parameter)), ""]
    text = "\n".join(lines[:-1])
    about = "The flags on the first page of help, made from the options: see tests/settings_pages.py."
    return f'"""{about}"""\n\nFLAG_HELP = """\\\n{text}"""\n'


def _flag_lines(parameter: Parameter) -> list[str]:
    defaults = {flag.name: _default(setting) for setting in _of(Group.LIMITS) for flag in setting.flags}
    names = sorted(parameter.name or (), key=len)
    left = f"  {', '.join(names)} {parameter.metavar or ''}".rstrip()
    words = str(parameter.help).removesuffix(".")
    words += f" (default: {defaults[names[-1]]})" if names[-1] in defaults else ""
    wrapped = textwrap.wrap(words.replace("`", ""), PAGE_WIDTH - FLAG_COLUMN, break_on_hyphens=False)
    first = f"{left.ljust(FLAG_COLUMN - 1)} {wrapped[0]}"
    return [first, *(" " * FLAG_COLUMN + line for line in wrapped[1:])]
