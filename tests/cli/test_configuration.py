"""Flags, environment and files become settings."""

import json
import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from explorer.cli.settings.configuration import flags_of, read_configuration
from explorer.cli.settings.fleet_options import WorkerOptions
from explorer.cli.settings.layers import NO_FLAGS, Flags, user_file
from explorer.cli.settings.options import AskOptions, RunOptions
from explorer.cli.settings.trust import TrustedFolders
from explorer.cli.settings.values import CORE, all_settings
from explorer.schema.errors import ConfigError, StorageError
from explorer.schema.settings import Settings

Explorer = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]
TRUSTING = Flags({}, {}, trusts_folder=True)
NOT_WRITTEN = {
    "tightening_rules",
    "cache_dir",
    "role_models",
    "is_sample",
    "files",
    "since_run",
    "state_dir",
    "mcp",
    "skill_folders",
    "preset",
}
"""Settings with a way of their own: a variable per role, `demo`, `--file`, `--preset`, tables, the user's folders."""


def leaves(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Every setting's dotted name."""
    names: set[str] = set()
    for name, field in model.model_fields.items():
        kind = field.annotation
        if prefix == "" and isinstance(kind, type) and issubclass(kind, BaseModel):
            names |= leaves(kind, f"{name}.")
        else:
            names.add(prefix + name)
    return names


def test_every_setting_is_in_the_table() -> None:
    """A setting that cannot be set from outside would be dead."""
    names = {setting.name for setting in CORE}
    assert names == {name for name in leaves(Settings) if name[:8] != "network."} - NOT_WRITTEN
    assert names < {setting.name for setting in all_settings()}


def test_every_flag_of_a_setting_is_an_option() -> None:
    """A setting that declares a flag is taken from the command line, each from its own flag."""
    for setting in all_settings():
        for flag in setting.flags:
            field = flag.name[2:].replace("-", "_")
            given: dict[str, Any] = {field: True if flag.value else ("x",) if field in {"model", "effort"} else "x"}
            options = AskOptions if hasattr(AskOptions, field) else WorkerOptions
            assert flags_of(options(**given)).values == {setting.name: flag.value or "x"}


def test_config_show_tells_every_setting(here: Explorer) -> None:
    """Name, variable, value, origin and what it is."""
    done = here("config", "show")
    assert done.returncode == 0
    for setting in all_settings():
        line = next(line for line in done.stdout.splitlines() if line.split()[1] == setting.variable)
        assert line.split()[0] == (setting.key or "-")
        assert setting.plain_help in line


def test_a_key_alone_brings_its_reader(tmp_path: Path) -> None:
    """`JINA_API_KEY` alone has pages read through Jina, which is shown with its reason; `none` refuses it."""
    cases: list[tuple[dict[str, str], str, str]] = [
        ({}, "", "default"),
        ({"JINA_API_KEY": "jina_0123456789"}, "https://r.jina.ai", "JINA_API_KEY is set"),
        (
            {"JINA_API_KEY": "jina_0123456789", "EXPLORER_READER_URL": "https://reader.example/"},
            "https://reader.example",
            "environment EXPLORER_READER_URL",
        ),
        (
            {"JINA_API_KEY": "jina_0123456789", "EXPLORER_READER_URL": "None"},
            "none",
            "environment EXPLORER_READER_URL",
        ),
    ]
    for variables, shown, origin in cases:
        configuration = read_configuration(NO_FLAGS, {"HOME": str(tmp_path), **variables}, tmp_path)
        row = next(value for value in configuration.values if value.name == "services.reader_url")
        assert (row.value, row.origin) == (shown, origin)
        assert configuration.settings.reader_address == ("" if shown == "none" else shown)
        sample = configuration.settings.model_copy(update={"is_sample": True})
        assert sample.reader_address == ""


VARIABLE = re.compile(r"\b(?:EXPLORER_[A-Z_]+|[A-Z]+_API_KEY|[A-Z]+_BASE_URL|REDDIT_CLIENT_[A-Z]+)\b")


def test_messages_name_variables_that_exist() -> None:
    """What a message or a hint asks to be set can be set: every variable's name in the sources is one of the table."""
    known = {setting.variable for setting in all_settings()} | {
        "EXPLORER_CRASH",
        "EXPLORER_MAX_STEP",
    }  # an example of a slip
    named = {
        (path.name, name)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for name in VARIABLE.findall(path.read_text())
    }
    assert len(named) > 30
    assert not {(file, name) for file, name in named if name not in known and not name.startswith("EXPLORER_MODEL_")}


def test_the_nearest_origin_wins(tmp_path: Path) -> None:
    """Flags, environment, .env, explorer.toml, the user's file, default: in this order, with the origin told."""
    home = tmp_path / "home"
    environment = {"HOME": str(home)}
    mine = user_file(environment)
    mine.parent.mkdir(parents=True)
    steps: list[tuple[str, Callable[[], object]]] = [
        ("default", lambda: None),
        (f"{mine} lang", lambda: mine.write_text('lang = "user"')),
        ("explorer.toml lang", lambda: (tmp_path / "explorer.toml").write_text('lang = "toml"')),
        (".env EXPLORER_LANG", lambda: (tmp_path / ".env").write_text("EXPLORER_LANG=dotenv")),
        ("environment EXPLORER_LANG", lambda: environment.update(EXPLORER_LANG="env")),
    ]
    for (origin, write), value in zip(steps, ["", "user", "toml", "dotenv", "env"], strict=True):
        write()
        configuration = read_configuration(NO_FLAGS, environment, tmp_path)
        assert (configuration.settings.language, configuration.origin("language")) == (value, origin)
    flagged = read_configuration(Flags({"language": "flag"}, {}), environment, tmp_path)
    assert (flagged.settings.language, flagged.origin("language")) == ("flag", "flag --lang")


def test_a_user_without_a_home_folder_has_settings(tmp_path: Path) -> None:
    """In a container, a user may have a number and nothing else: there is no own file, and no folder is trusted."""
    nobody = {"HOME": "~nobody-of-this-name"}
    (tmp_path / "explorer.toml").write_text('lang = "toml"')
    configuration = read_configuration(NO_FLAGS, nobody, tmp_path)
    assert (configuration.settings.language, configuration.settings.state_dir) == ("toml", None)
    assert TrustedFolders(nobody).all() == []
    with pytest.raises(StorageError, match="cannot remember the folder"):
        TrustedFolders(nobody).add(configuration.folder)


def test_models_by_role_are_overlaid_role_by_role(tmp_path: Path) -> None:
    """A flag for one role leaves the other roles' models in place."""
    (tmp_path / "explorer.toml").write_text('[models]\nsearcher = "a"\nwriter = "b"\n')
    environment = {"EXPLORER_MODEL_ANALYZER": "c", "HOME": str(tmp_path)}
    flags = flags_of(RunOptions(model=("d", "searcher=e=f")))
    settings = read_configuration(flags, environment, tmp_path).settings
    assert settings.model == "d"
    assert settings.role_models == {"searcher": "e=f", "writer": "b", "analyzer": "c"}


def test_efforts_are_for_all_roles_or_for_one(tmp_path: Path) -> None:
    """A variable, a file and repeated flags say the same; a flag stands in for the whole of the others."""
    (tmp_path / "explorer.toml").write_text('effort = ["low", "writer=high"]\n')
    environment = {"HOME": str(tmp_path)}
    assert read_configuration(NO_FLAGS, environment, tmp_path).settings.effort == {"*": "low", "writer": "high"}
    environment["EXPLORER_EFFORT"] = "max, searcher=none"
    assert read_configuration(NO_FLAGS, environment, tmp_path).settings.effort == {"*": "max", "searcher": "none"}
    flags = flags_of(RunOptions(effort=("writer=high", "medium")))
    assert read_configuration(flags, environment, tmp_path).settings.effort == {"writer": "high", "*": "medium"}


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("EXPLORER_MAX_TIME", "90", "max_time_s", 90),
        ("EXPLORER_MAX_TIME", "1.5m", "max_time_s", 90),
        ("EXPLORER_MAX_TIME", "2h", "max_time_s", 7200),
        ("EXPLORER_MAX_TIME", "none", "max_time_s", None),
        ("EXPLORER_MAX_COST", "$0.50", "max_cost_usd", 0.5),
        ("EXPLORER_MAX_STEPS", "1_000", "max_steps", 1000),
        ("EXPLORER_MAX_AGENTS", "0", "max_agents", 0),
    ],
)
def test_values_are_read(variable: str, text: str, name: str, value: object, tmp_path: Path) -> None:
    """Times have units, money may have its sign, digits may be parted, limits may be lifted."""
    limits = read_configuration(NO_FLAGS, {variable: text}, tmp_path).settings.limits
    assert getattr(limits, name) == value


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("EXPLORER_MAX_STEPS", "abc"),
        ("EXPLORER_MAX_STEPS", "0"),
        ("EXPLORER_MAX_STEPS", "-1"),
        ("EXPLORER_MAX_COST", "nan"),
        ("EXPLORER_MAX_COST", "0"),
        ("EXPLORER_MAX_TIME", "10 parsecs"),
        ("EXPLORER_MAX_TIME", "inf"),
        ("EXPLORER_MAX_AGENTS", "none"),
        ("EXPLORER_PRICE", "3"),
        ("EXPLORER_EFFORT", "hihg"),
        ("EXPLORER_EFFORT", "=high"),
        ("EXPLORER_EFFORT", "writer=high,"),
        ("EXPLORER_HN_API_URL", "hn.example"),
        ("OPENAI_BASE_URL", "file:///etc/passwd"),
        ("EXPLORER_ALLOW_HOSTS", "a b/c"),
    ],
)
def test_a_bad_value_is_refused_by_name(variable: str, text: str, tmp_path: Path) -> None:
    """The error names the variable, the value, and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        read_configuration(NO_FLAGS, {variable: text}, tmp_path)
    assert f"environment {variable}: {text!r}" in caught.value.message
    assert "allowed is" in caught.value.hint


def test_a_bad_value_in_a_file_names_file_and_key(tmp_path: Path) -> None:
    """Also when it is of a type that no setting has."""
    (tmp_path / "explorer.toml").write_text("[limits]\nmax_steps = -3\n")
    with pytest.raises(ConfigError, match=r"explorer.toml limits.max_steps: '-3' is not allowed"):
        read_configuration(NO_FLAGS, {}, tmp_path)
    (tmp_path / "explorer.toml").write_text("model = true\n")
    with pytest.raises(ConfigError, match="`model` must be a text or a number"):
        read_configuration(NO_FLAGS, {}, tmp_path)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("modle = 1", "did you mean `model`?"),
        ("[limits]\nmax_step = 1", "did you mean `limits.max_steps`?"),
        ("max_cost = 1", "did you mean `limits.max_cost`?"),
        ("anthropic_api_key = 'x'", "as ANTHROPIC_API_KEY"),
        ("entirely_different = 1", "known are: model"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(content: str, hint: str, tmp_path: Path) -> None:
    """A silent slip would be a limit that does not hold; and keys do not belong into a settings file."""
    (tmp_path / "explorer.toml").write_text(content)
    with pytest.raises(ConfigError) as caught:
        read_configuration(NO_FLAGS, {}, tmp_path)
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["explorer.toml", ".env"])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    """Bytes that are no text are the user's to mend."""
    (tmp_path / name).write_bytes(b"EXPLORER_LANG=\xff\xfe")
    with pytest.raises(ConfigError, match=name):
        read_configuration(NO_FLAGS, {}, tmp_path)


def test_dotenv_leaves_the_environment_alone_and_is_not_interpolated(tmp_path: Path) -> None:
    """A value is what it says; secrets of the environment cannot be drawn into other settings."""
    (tmp_path / ".env").write_text("EXPLORER_LANG='${ANTHROPIC_API_KEY}'\n")
    configuration = read_configuration(TRUSTING, {"ANTHROPIC_API_KEY": "secret-1"}, tmp_path)
    assert configuration.settings.language == "${ANTHROPIC_API_KEY}"


def test_empty_variables_count_as_unset(tmp_path: Path) -> None:
    """That is how one unsets a variable for a single command."""
    (tmp_path / "explorer.toml").write_text('lang = "de"')
    configuration = read_configuration(NO_FLAGS, {"EXPLORER_LANG": " "}, tmp_path)
    assert configuration.settings.language == "de"


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_no_key_is_ever_shown(here: Explorer, output_format: str) -> None:
    """Only whether it is set; nor is a password in a URL."""
    done = here(
        "config",
        "show",
        "--output-format",
        output_format,
        ANTHROPIC_API_KEY="sk-very-secret",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://user:hunter2@127.0.0.1:1",
    )
    assert done.returncode == 0
    assert "very-secret" not in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert "environment ANTHROPIC_API_KEY" in done.stdout


def test_a_key_with_a_line_break_is_refused_without_showing_it(here: Explorer) -> None:
    """It would end in a header."""
    done = here("config", "show", TAVILY_API_KEY="tvly-secret\nX-Evil: 1")
    assert done.returncode == 2
    assert "TAVILY_API_KEY" in done.stderr
    assert "tvly-secret" not in done.stderr


def test_config_show_is_json_for_programs(here: Explorer) -> None:
    """One object a setting."""
    rows = json.loads(here("config", "show", "--output-format", "json", EXPLORER_MAX_STEPS="7").stdout)
    row = next(row for row in rows if row["name"] == "limits.max_steps")
    assert (row["value"], row["origin"]) == (7, "environment EXPLORER_MAX_STEPS")


def test_what_config_show_prints_is_what_a_file_takes(here: Explorer, tmp_path: Path) -> None:
    """Every name with its value, written into a file, gives the same settings again; also with values set."""
    set_now = {
        "EXPLORER_MAX_COST": "2.5",
        "EXPLORER_MAX_TIME": "none",
        "EXPLORER_MAX_TOKENS": "none",
        "EXPLORER_PRICE": "3/15",
        "EXPLORER_ALLOW_HOSTS": "127.0.0.1,intranet.example",
        "EXPLORER_MODEL_WRITER": "anthropic:claude-opus-5-5",
        "EXPLORER_LANG": "de",
        "EXPLORER_EFFORT": "high,writer=max",
        "EXPLORER_TIMEZONE": "Europe/Berlin",
    }
    for number, chosen in enumerate(({"EXPLORER_TIMEZONE": "UTC"}, set_now)):
        variables = chosen | {"EXPLORER_SHELL": "auto"}
        table = here("config", "show", **variables).stdout.splitlines()
        places = [table[0].index(title) for title in ("IN A FILE", "VARIABLE", "VALUE", "ORIGIN")]
        cells = [[row[left:right].strip() for left, right in pairwise(places)] for row in table[1:]]
        taken = [(key, value) for key, _, value in cells if key != "-" and value != "-"]
        assert len(taken) > 10
        folder = tmp_path / f"again-{number}"
        folder.mkdir()
        (folder / "explorer.toml").write_text("".join(f"{key} = '{value}'\n" for key, value in taken))
        again = read_configuration(TRUSTING, {"HOME": str(tmp_path)}, folder)
        first = read_configuration(NO_FLAGS, {"HOME": str(tmp_path), **variables}, tmp_path)
        assert {value.name: value.value for value in again.values} == {
            value.name: value.value for value in first.values
        }


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("EXPLORER_MAX_STEP", "did you mean EXPLORER_MAX_STEPS?"),
        pytest.param("EXPLORER_ENTIRELY_ELSE", "all names: explorer conf", marks=pytest.mark.slow),
    ],
)
def test_an_unknown_variable_of_ours_is_refused(here: Explorer, tmp_path: Path, name: str, hint: str) -> None:
    """In the environment and in `.env`: a limit with a slip in its name would be none. `doctor` lists them all."""
    done = here("--model", "offline", "q q", **{name: "1"})
    assert (done.returncode, done.stdout) == (2, "")
    assert f"environment {name}: there is no such setting" in done.stderr
    assert hint in done.stderr
    assert f"unset {name}" in done.stderr
    (tmp_path / ".env").write_text(f"{name}=1\n")
    assert f".env {name}: there is no such setting" in here("runs").stderr
    looked = here("doctor")
    assert looked.returncode == 1
    assert f".env {name} is not a setting" in looked.stdout


def test_variables_of_other_programs_and_of_roles_stop_nothing(tmp_path: Path) -> None:
    """Only names that begin as ours do are ours."""
    variables = {"EXPLORER_MODEL_WRITER": "x", "XEXPLORER_A": "1", "EXPLORERS": "1"}
    assert read_configuration(NO_FLAGS, variables, tmp_path).unknown == ()


def test_a_variable_for_the_model_of_no_role_is_refused_with_the_closest(here: Explorer, tmp_path: Path) -> None:
    """Its name begins as one of ours does; that there is no such role is seen before anything starts."""
    done = here("--model", "offline", "q q", EXPLORER_MODEL_SEACHER="offline")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean searcher?" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_limit_left_to_the_models_can_be_said(tmp_path: Path) -> None:
    """`auto` over a file's value is as good as nothing set."""
    (tmp_path / "explorer.toml").write_text("[limits]\nmax_cost = 3\n")
    limits = read_configuration(Flags({"limits.max_cost_usd": "auto"}, {}), {}, tmp_path).settings.limits
    assert "max_cost_usd" not in limits.model_fields_set
    assert read_configuration(NO_FLAGS, {}, tmp_path).settings.limits.max_cost_usd == 3
