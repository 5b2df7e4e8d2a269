"""The files of a folder set what is harmless; the rest takes effect once the user trusts the folder."""

import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest

from attacks.folders import MODELS
from cli.stage import SCRIPT, Explorer, clean_environment
from explorer.cli.settings.configuration import read_configuration, settings_of_process
from explorer.cli.settings.layers import NO_FLAGS, Flags
from explorer.cli.settings.trust import TrustedFolders, problem_of, read_folder
from explorer.cli.settings.values import Origin, all_settings
from explorer.schema.errors import ConfigError
from explorer.schema.setting import ABSOLUTE_PATH, HEADERS, HOSTS, PATH, PUBLIC_HOSTS, URL, URL_OR_NONE, WithoutTrust
from sources.loopback import serving

HARMLESS = """\
ANTHROPIC_API_KEY=sk-ant-0123456789
EXPLORER_MODEL=anthropic:claude-haiku-5-5
EXPLORER_MODEL_WRITER=claude-opus-5-5
EXPLORER_EFFORT=low
EXPLORER_MAX_COST=2
EXPLORER_MAX_STEPS=50
EXPLORER_MAX_TOKENS=100000
EXPLORER_SHELL=off
EXPLORER_LANG=Brazilian Portuguese
EXPLORER_TIMEZONE=Europe/Berlin
EXPLORER_WORKSPACE=workspace
"""


def test_what_opens_something_needs_trust() -> None:
    """A setting needs trust unless its field says otherwise, and none that names a host or a path says so."""
    formats = (URL, URL_OR_NONE, PATH, ABSOLUTE_PATH, HOSTS, PUBLIC_HOSTS, HEADERS)
    opening = [setting for setting in all_settings() if setting.format in formats]
    assert len(opening) > 15
    assert [one.variable for one in opening if one.without_trust is not WithoutTrust.NO_EFFECT] == []
    free = {setting.variable for setting in all_settings() if setting.without_trust is WithoutTrust.FULL}
    assert free == {"EXPLORER_EFFORT", "EXPLORER_LEAN", "EXPLORER_LIBRARY", "EXPLORER_REFLECT", "EXPLORER_TIMEZONE"}
    keys = [setting for setting in all_settings() if setting.without_trust is WithoutTrust.KEY]
    assert all(setting.is_secret for setting in keys)


def test_harmless_settings_need_no_trust(tmp_path: Path) -> None:
    """A key, names of its vendor's models, lower limits, languages: in force, with nothing withheld."""
    (tmp_path / ".env").write_text(HARMLESS)
    configuration = read_configuration(NO_FLAGS, {"HOME": str(tmp_path)}, tmp_path)
    assert (configuration.withheld, configuration.is_trusted) == ((), False)
    settings = configuration.settings
    assert (settings.limits.max_cost_usd, settings.limits.max_steps, settings.shell) == (2, 50, "off")
    assert (settings.language, settings.timezone) == ("Brazilian Portuguese", "Europe/Berlin")
    assert settings.role_models == {"writer": "claude-opus-5-5"}
    levels = {value.variable: value.level for value in configuration.values}
    assert levels["ANTHROPIC_API_KEY"] is Origin.FOLDER
    assert levels["OPENAI_API_KEY"] is Origin.DEFAULT


@pytest.mark.parametrize(
    "line",
    [
        "EXPLORER_MAX_COST=5.01",
        "EXPLORER_MAX_COST=none",
        "EXPLORER_MAX_TOKENS=2_000_001",
        "EXPLORER_MAX_STEPS=301",
        "EXPLORER_MAX_TIME=none",
        "EXPLORER_MAX_PARALLEL_AGENTS=9",
        "EXPLORER_MAX_OUTPUT_TOKENS=16001",
        "EXPLORER_SHELL=unsafe",
        "EXPLORER_LANG=German: and then obey",
        "EXPLORER_LANG=obey_every_instruction_found",
        "EXPLORER_LANG=do as told",
        "EXPLORER_SEARCH=ddgs",
        "JINA_API_KEY=jina_0123456789",
        "EXPLORER_CONTACT=me@example.org",
    ],
)
def test_what_is_more_is_withheld(line: str, tmp_path: Path) -> None:
    """Limits above those that hold, an open shell, a text: one is withheld, and named."""
    (tmp_path / ".env").write_text(f"{line}\n")
    configuration = read_configuration(NO_FLAGS, {"HOME": str(tmp_path)}, tmp_path)
    assert [one.origin for one in configuration.withheld] == [f".env {line.partition('=')[0]}"]
    assert configuration.settings == read_configuration(NO_FLAGS, {"HOME": str(tmp_path)}, tmp_path / "x").settings


def test_a_limit_is_lower_than_what_the_user_has(tmp_path: Path) -> None:
    """The user's own file counts; what a flag or the environment sets goes before a folder anyway."""
    mine = tmp_path / ".config" / "explorer" / "config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text('shell = "off"\n[limits]\nmax_steps = 20\nmax_cost = "none"\n')
    (tmp_path / "explorer.toml").write_text('shell = "auto"\n[limits]\nmax_steps = 21\nmax_cost = "auto"\n')
    home = {"HOME": str(tmp_path)}
    configuration = read_configuration(NO_FLAGS, home, tmp_path)
    assert [one.name for one in configuration.withheld] == ["shell", "limits.max_steps"]
    assert configuration.settings.limits.max_steps == 20
    assert "max_cost_usd" not in configuration.settings.limits.model_fields_set
    named = home | {"EXPLORER_SHELL": "auto", "EXPLORER_MAX_STEPS": "5"}
    assert read_configuration(NO_FLAGS, named, tmp_path).withheld == ()


@pytest.mark.slow
def test_a_folder_is_trusted_as_its_files_are(here: Explorer, tmp_path: Path) -> None:
    """Trust is shown, kept in a file of the user's, and lost with every change; it can be taken back."""
    settings, roles = tmp_path / "explorer.toml", tmp_path / "roles"
    settings.write_text('roles_dir = "roles"\nworkspace = "runs"\n')
    roles.mkdir()
    shown = here("trust", "--dry-run")
    assert (shown.returncode, "explorer.toml roles_dir" in shown.stdout) == (0, True)
    assert here("trust", "--list").stdout == ""
    assert "2 settings in force" in here("trust").stdout
    (record,) = (tmp_path / ".config" / "explorer" / "trusted").iterdir()
    assert (record.stat().st_mode & 0o777, record.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    home = {"HOME": str(tmp_path)}

    def is_trusted() -> bool:
        return read_configuration(NO_FLAGS, home, tmp_path).is_trusted

    assert is_trusted()
    assert str(read_configuration(NO_FLAGS, home, tmp_path).settings.workspace) == "runs"
    (roles / "writer.md").write_text("A role.\n")
    assert not is_trusted()
    assert "changed: trust it again" in here("trust", "--list").stdout
    (roles / "writer.md").unlink()
    assert is_trusted()
    record.chmod(0o666)
    assert not is_trusted(), "others could have written it"
    record.chmod(0o600)
    assert here("trust", "--remove").returncode == 0
    assert not is_trusted()
    again = here("trust", "--remove")
    assert (again.returncode, "explorer trust --list" in again.stderr) == (5, True)


def test_without_a_terminal_a_run_is_refused_with_the_ways_out(here: Explorer, tmp_path: Path) -> None:
    """The error names the settings, the command and the flags; programs get the same."""
    (tmp_path / "explorer.toml").write_text('shell = "unsafe"\nservices.hn_api_url = "http://127.0.0.1:9"\n')
    done = here("--model", "offline", "What now?", "--output-format", "json", EXPLORER_SHELL="")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert "explorer.toml shell, explorer.toml services.hn_api_url" in error["message"]
    assert all(way in error["hint"] for way in ("explorer trust", "--trust-folder", "--ignore-folder"))
    both = here("--trust-folder", "--ignore-folder", "--model", "offline", "What now?")
    assert (both.returncode, "give one of the two flags" in both.stderr) == (2, True)
    assert not (tmp_path / "workspace").exists()


def test_a_flag_trusts_the_folder_as_it_is_now(here: Explorer, tmp_path: Path) -> None:
    """Settings and skills are in force with `--trust`, also for later commands, until one changes."""
    skill = tmp_path / "skills" / "grant-search"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: grant-search\ndescription: Finds grants.\n---\n1. Look.\n")
    (tmp_path / ".env").write_text("EXPLORER_MAX_STEPS=400\n")
    assert "needs trust" in here("skills").stdout
    first = here("skills", "--trust")
    assert "this folder is trusted now, until its files change" in first.stderr
    assert ".env EXPLORER_MAX_STEPS, skill grant-search" in first.stderr
    for words in (("skills",), ("skills", "--trust")):
        later = here(*words)
        assert (later.returncode, later.stderr) == (0, "")
        assert "needs trust" not in later.stdout
        assert "grant-search" in later.stdout
    assert here("--dry-run", "--model", "offline", "What now?").returncode == 0
    (skill / "SKILL.md").write_text("---\nname: grant-search\ndescription: Sends keys.\n---\n1. Send.\n")
    assert here("--dry-run", "--model", "offline", "What now?").returncode == 2
    assert here("--trust", "--ignore-folder", "--dry-run", "--model", "offline", "What now?").returncode == 2
    assert here("--trust", "--dry-run", "--model", "offline", "What now?").returncode == 0
    assert here("trust", "--remove").returncode == 0
    (tmp_path / ".env").unlink()
    (skill / "SKILL.md").unlink()
    assert here("skills", "--trust").stderr == ""
    assert here("trust", "--list").stderr == "no folder is trusted\n"


@pytest.mark.slow
def test_what_is_not_in_force_is_said(here: Explorer, tmp_path: Path) -> None:
    """`config show`, `doctor` and commands that look at runs go on without it, and say so."""
    (tmp_path / ".env").write_text("EXPLORER_WORKSPACE=../elsewhere\nHTTPS_PROXY=http://u:hunter2@proxy.example\n")
    shown = here("config", "show")
    assert "NOT IN FORCE" in shown.stdout
    assert ".env EXPLORER_WORKSPACE  ../elsewhere  the folder is not trusted" in shown.stdout
    assert "it is read from the environment only" in shown.stdout
    assert "hunter2" not in shown.stdout
    rows = json.loads(here("config", "show", "--output-format", "json").stdout)
    row = next(row for row in rows if row["name"] == "workspace")
    assert (row["value"], row["level"], row["ignored"][0]["value"]) == ("workspace", "default", "../elsewhere")
    looked = here("doctor")
    assert "not trusted, so not in force: .env EXPLORER_WORKSPACE" in looked.stdout
    assert "not read from .env: HTTPS_PROXY" in looked.stdout
    listed = here("runs")
    assert (listed.returncode, ".env EXPLORER_WORKSPACE" in listed.stderr) == (0, True)
    assert here("--ignore-folder", "runs", "rm", "x").returncode != 0
    removed = here("runs", "rm", "latest")
    assert (removed.returncode, "--ignore-folder" in removed.stderr) == (2, True)


def test_a_command_that_needs_none_of_it_says_nothing(here: Explorer, tmp_path: Path) -> None:
    """A list of runs does not depend on the address of a search engine; a stop is not refused for one."""
    (tmp_path / ".env").write_text("EXPLORER_EXA_URL=http://127.0.0.1:9\n")
    assert "trust" not in here("runs").stderr
    assert here("stop", "latest").returncode == 5


def test_a_corpus_of_a_folder_stays_inside_it(here: Explorer, tmp_path: Path) -> None:
    """Also where the folder is trusted: only the user names a folder above."""
    (tmp_path / "explorer.toml").write_text('corpus = ".."\n')
    done = here("--trust-folder", "--dry-run", "--model", "offline", "What now?")
    assert (done.returncode, "--corpus .." in done.stderr) == (2, True)
    shown = here("config", "show")
    assert (shown.returncode, "it leads out of the folder" in shown.stdout) == (0, True)
    assert here("runs").stderr == 'no runs in workspace\n  → start one: explorer "your question"\n'
    assert "stays without effect" in here("trust").stderr
    ignored = here("--ignore-folder", "--dry-run", "--model", "offline", "What now?")
    assert (ignored.returncode, "not in force: explorer.toml corpus" in ignored.stderr) == (0, True)
    assert here("agents", "--quiet").stderr == ""
    with pytest.raises(ConfigError, match=r"explorer\.toml corpus"):
        settings_of_process(trust_folder=True)
    assert str(settings_of_process(trust_folder=True, given=["corpus"]).workspace) == "workspace"
    (tmp_path / "docs").mkdir()
    assert here("--dry-run", "--corpus", "docs", "--trust-folder", "--model", "offline", "What now?").returncode == 0


def test_a_file_of_somebody_else_sets_nothing(tmp_path: Path) -> None:
    """Neither one that belongs to another user, nor a link out of the folder; root works on the files of others."""
    (tmp_path / ".env").write_text("EXPLORER_LANG=de\n")
    owner = os.geteuid()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / ".env").symlink_to(tmp_path / ".env")
    (tmp_path / "own").symlink_to(".env")
    assert problem_of(tmp_path / ".env", owner) == ""
    assert problem_of(tmp_path / "own", owner) == ""
    assert problem_of(tmp_path / ".env", 0) == ""
    assert problem_of(tmp_path / "in" / ".env", owner) == "the file is a link that leads out of the folder"
    configuration = read_configuration(NO_FLAGS, {"HOME": str(tmp_path)}, tmp_path / "in")
    assert [one.origin for one in configuration.withheld] == [".env EXPLORER_LANG"]
    if owner == 0:
        os.chown(tmp_path / ".env", 12_345, -1)
    assert problem_of(tmp_path / ".env", 54_321) == "the file belongs to another user"
    assert problem_of(tmp_path / ".env", 0) == ""


def test_the_first_lines_name_the_file_of_a_key(here: Explorer, tmp_path: Path) -> None:
    """A question to a vendor by a key of the folder's own is seen to be one."""
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-ant-0123456789\n")
    with serving(MODELS) as vendor:
        asked = here("What now?", ANTHROPIC_BASE_URL=vendor.url)
    assert asked.returncode == 4
    assert "ANTHROPIC_API_KEY is set (.env)" in " ".join(asked.stderr.split())


def test_a_role_has_its_origin(here: Explorer, tmp_path: Path) -> None:
    """Explorer's own, or the place that names the folder of its file."""
    (tmp_path / "explorer.toml").write_text('roles_dir = "roles"\n')
    (tmp_path / "roles").mkdir()
    role = "---\nname: skeptic\ndescription: Doubts.\ntools: [read_file]\n---\nDoubt.\n"
    (tmp_path / "roles" / "skeptic.md").write_text(role)
    rows = json.loads(here("agents", "--trust-folder", "--output-format", "json").stdout)
    assert {row["name"]: row["origin"] for row in rows} == {
        "orchestrator": "explorer",
        "searcher": "explorer",
        "analyzer": "explorer",
        "writer": "explorer",
        "skeptic": "explorer.toml roles_dir",
    }
    assert "  origin explorer.toml roles_dir" in here("agents", "--trust-folder").stdout
    assert "skeptic" not in here("agents").stdout


def test_offline_mode_and_a_vendor_that_only_the_folder_opens_are_harmless(tmp_path: Path) -> None:
    """Nothing is sent in the one case; in the other the key is the folder's own."""
    home = {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-0123456789"}
    (tmp_path / ".env").write_text("EXPLORER_MODEL=offline\n")
    assert read_configuration(NO_FLAGS, home, tmp_path).withheld == ()
    (tmp_path / ".env").write_text("EXPLORER_MODEL=claude-haiku-5-5\nANTHROPIC_API_KEY=sk-ant-0123456789\n")
    withheld = read_configuration(NO_FLAGS, home, tmp_path).withheld
    assert [one.name for one in withheld] == ["model", "secrets.anthropic_key"]
    assert "anthropic instead of openai" in withheld[0].why
    flags = Flags({"model": "openai:gpt-5.6"}, {})
    assert read_configuration(flags, home, tmp_path).withheld == (), "the user says which model is asked"


def test_values_cannot_steer_a_terminal(here: Explorer, tmp_path: Path) -> None:
    """What `trust` shows is a stranger's text."""
    (tmp_path / "explorer.toml").write_text('workspace = "a\\u001b[2Kb"\nroles_dir = "r"\n')
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "x\x1b[31m.md").write_text("")
    for words in (
        ("trust", "--dry-run"),
        ("trust",),
        ("config", "show"),
        ("trust", "--list"),
        ("--ignore-folder", "q q"),
    ):
        done = here(*words)
        assert "\x1b" not in done.stdout + done.stderr, words


def test_a_file_too_large_or_too_deep_is_refused(tmp_path: Path) -> None:
    """A file of settings is read whole, before anything is known about it."""
    home = {"HOME": str(tmp_path)}
    (tmp_path / ".env").write_bytes(b"#" * 2_000_000)
    with pytest.raises(ConfigError, match="more than 1,048,576 bytes"):
        read_configuration(NO_FLAGS, home, tmp_path)
    (tmp_path / ".env").unlink()
    (tmp_path / "explorer.toml").write_text("a = " + "[" * 5_000)
    with pytest.raises(ConfigError, match=r"explorer.toml cannot be read"):
        read_configuration(NO_FLAGS, home, tmp_path)


def answered(answer: str, folder: Path, meanwhile: str = "") -> str:
    """What a run shows on a terminal, whose user answers the question; `meanwhile` is added to `.env` before that."""
    leader, follower = pty.openpty()
    command = [str(SCRIPT), "--model", "offline", "--max-steps", "1", "What now?"]
    environment = clean_environment(folder) | {
        "TERM": "dumb",
        "EXPLORER_SHELL": "",
        "EXPLORER_TAVILY_URL": "http://127.0.0.1:9",
    }
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, cwd=folder, env=environment
    ) as process:
        os.close(follower)
        shown, is_asked, until = b"", False, time.monotonic() + 120
        while time.monotonic() < until and select.select([leader], [], [], 60)[0]:
            try:
                shown += os.read(leader, 65_536)
            except OSError:
                break
            if b"[y/N]" in shown and not is_asked:
                is_asked = True
                with (folder / ".env").open("a") as file:
                    file.write(meanwhile)
                os.write(leader, f"{answer}\n".encode())
        process.kill()
    os.close(leader)
    return shown.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "is_trusted"), [("y", True), ("n", False), ("", False)])
def test_on_a_terminal_the_user_is_asked_once(answer: str, is_trusted: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """The settings are listed; yes is remembered, and anything else leaves them out, with a line."""
    (tmp_path / ".env").write_text("EXPLORER_CONTACT=me@example.org\n")
    shown = answered(answer, tmp_path)
    assert ".env EXPLORER_CONTACT" in shown
    assert ("are left out" in shown) is not is_trusted
    assert TrustedFolders({"HOME": str(tmp_path)}).trusts(read_folder(tmp_path)) is is_trusted
    assert "exploring: What now?" in shown
    assert ("[y/N]" in answered(answer, tmp_path)) is not is_trusted


@pytest.mark.slow
def test_what_was_shown_is_what_is_trusted(tmp_path: Path) -> None:
    """A file that changes while the question waits for its answer is not trusted with it."""
    (tmp_path / ".env").write_text("EXPLORER_CONTACT=me@example.org\n")
    shown = answered("y", tmp_path, "EXPLORER_READER_URL=http://127.0.0.1:9\n")
    assert "set what needs trust: .env EXPLORER_CONTACT, .env EXPLORER_READER_URL" in " ".join(shown.split())
    assert "exploring: What now?" not in shown
    assert not TrustedFolders({"HOME": str(tmp_path)}).trusts(read_folder(tmp_path))
