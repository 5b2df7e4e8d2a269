"""The commands below `skills`, and a project's skills before and after the user trusts the folder."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.cli.settings.configuration import read_configuration
from explorer.cli.settings.layers import NO_FLAGS, Flags
from explorer.cli.settings.trust import TrustedFolders, read_folder
from explorer.schema.skill_folder import SkillOrigin
from explorer.testing import ScriptedServer, says

BUILT_IN = {"chinese-report", "company-brief", "comparing-technologies", "literature-review", "news-digest"}
Asks = Callable[..., list[str]]


def planted(folder: Path, place: str = ".agents/skills", name: str = "tides", body: str = "Look at the moon.") -> Path:
    """A skill of a project."""
    skill = folder / place / name
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Finds {name}.\n---\n{body}\n")
    return skill / "SKILL.md"


@pytest.mark.parametrize("place", ["skills", ".agents/skills", ".explorer/skills"])
def test_a_project_s_skills_need_trust(place: str, tmp_path: Path) -> None:
    """They count once the folder is trusted, for one command or from now on, and no longer when a file changes."""
    path, home = planted(tmp_path, place), {"HOME": str(tmp_path / "home")}
    before = read_configuration(NO_FLAGS, home, tmp_path)
    assert (before.settings.skill_folders, before.waiting_skills, before.withheld) == ((), [path.parent], ())
    (once,) = read_configuration(Flags({}, {}, trusts_folder=True), home, tmp_path).settings.skill_folders
    assert (once.path, once.origin) == (path.parents[1], SkillOrigin.PROJECT)
    TrustedFolders(home).add(read_folder(tmp_path))
    (kept,) = read_configuration(NO_FLAGS, home, tmp_path).settings.skill_folders
    assert kept == once
    for change in (lambda: path.write_text(f"{path.read_text()}Obey."), (path.parent / "more.md").touch):
        TrustedFolders(home).add(read_folder(tmp_path))
        change()
        assert read_configuration(NO_FLAGS, home, tmp_path).settings.skill_folders == ()


def test_skills_of_a_project_s_preset_are_a_part_of_what_is_trusted(tmp_path: Path) -> None:
    """They count with the preset alone, and a change to one takes the trust back."""
    path, home = planted(tmp_path, ".explorer/presets/sea/skills"), {"HOME": str(tmp_path / "home")}
    (tmp_path / ".explorer" / "presets" / "sea" / "preset.toml").write_text('description = "x"\n')
    TrustedFolders(home).add(read_folder(tmp_path))
    kept = read_configuration(NO_FLAGS, home, tmp_path)
    assert (kept.is_trusted, kept.settings.skill_folders) == (True, ())
    path.write_text(f"{path.read_text()}Obey.")
    assert not read_configuration(NO_FLAGS, home, tmp_path).is_trusted


def test_a_record_from_before_there_were_skills_still_holds(tmp_path: Path) -> None:
    """Without skills in it, a trusted folder has the digest that it had; its first skill needs the consent anew."""
    (tmp_path / ".env").write_text("EXPLORER_SEARCH=ddgs\n")
    home = {"HOME": str(tmp_path / "home")}
    folder = read_folder(tmp_path)
    TrustedFolders(home).add(folder)
    parts = (str(tmp_path / ".env"), "EXPLORER_SEARCH=ddgs\n")
    assert folder.digest == hashlib.sha256("".join(f"{len(one)}:{one}" for one in parts).encode()).hexdigest()
    assert read_configuration(NO_FLAGS, home, tmp_path).is_trusted
    planted(tmp_path)
    assert not read_configuration(NO_FLAGS, home, tmp_path).is_trusted


def test_the_user_s_own_folder_counts_at_once(here: Explorer, tmp_path: Path) -> None:
    """`new` makes a valid skill there, and refuses names and texts that the format does not take."""
    done = here("skills", "new", "grant-search", "Finds grants. Use it for funding.")
    path = tmp_path / ".config" / "explorer" / "skills" / "grant-search" / "SKILL.md"
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert f"explorer skills validate {path.parent}" in done.stderr
    assert here("skills", "validate", str(path)).stdout == f"{path.parent}: valid\n"
    listed = {one["name"]: one for one in json.loads(here("skills", "--output-format", "json").stdout)}
    assert (listed["grant-search"]["state"], listed["grant-search"]["origin"]) == ("in use", "user")
    for words in (("grant-search", "x"), ("Grants", "x"), ("../x", "x"), ("grants", " ")):
        assert here("skills", "new", *words).returncode == 2
    assert here("skills", "new", "tides", "x", "--in", str(tmp_path / "mine")).returncode == 0
    assert "tides" in here("skills", "--skills", str(tmp_path / "mine")).stdout
    missing = here("skills", "--skills", str(tmp_path / "none"))
    assert (missing.returncode, "is not a folder of skills" in missing.stderr) == (2, True)


def test_skills_are_listed_shown_and_checked(here: Explorer, tmp_path: Path) -> None:
    """With where each is from, whether it counts and why not; a skill that waits for trust can be read before."""
    planted(tmp_path)
    planted(tmp_path, name="broken").write_text("nothing")
    listed = json.loads(here("skills", "list", "--output-format", "json").stdout)
    states = {one["name"]: one["state"] for one in listed}
    assert states == {**dict.fromkeys(BUILT_IN, "in use"), "broken": "left out", "tides": "needs trust"}
    shown = here("skills", "show", "tides")
    assert (shown.returncode, "needs trust" in shown.stdout, "Look at the moon." in shown.stdout) == (0, True, True)
    assert json.loads(here("skills", "show", "tides", "--output-format", "json").stdout)["text"] == "Look at the moon."
    gone = here("skills", "show", "broken")
    assert (gone.returncode, "does not begin with frontmatter" in gone.stderr) == (5, True)
    checked = here("skills", "validate", ".agents/skills")
    assert (checked.returncode, checked.stdout.count("\n")) == (2, 2)
    (bad,) = [
        one for one in json.loads(here("skills", "validate", "--output-format", "json").stdout) if one["problems"]
    ]
    assert (Path(bad["folder"]).name, bad["is_valid"]) == ("broken", False)
    assert here("skills", "validate", "nowhere").returncode == 5


@pytest.mark.slow
def test_a_run_uses_a_project_s_skills_with_consent_only(here: Explorer, tmp_path: Path) -> None:
    """Without it, no word of them reaches the model and one line says so; with it, the model loads them."""
    path = planted(tmp_path)

    def systems(*flags: str) -> tuple[str, str]:
        script = [
            says("", ("load_skill", {"name": "tides"})),
            says("", ("write_file", {"filepath": "report.md", "content": "# Tides\n\nNothing was found.\n"})),
            says("", ("finish_exploration", {"summary": "None.", "nothing_found": True})),
        ]
        with ScriptedServer(script) as server:
            done = here(*flags, "Tides?", OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-0123456789")
            return str(server.requests), done.stderr

    sent, words = systems()
    assert "Finds tides." not in sent
    assert "there is no skill" in sent
    assert "1 skill of this folder is not used, because it is not trusted (.agents/skills)" in words
    assert "explorer trust" in words
    assert "1 skill in force from now on" in here("trust").stdout
    sent, words = systems()
    assert "- tides: Finds tides." in sent
    assert "Look at the moon." in sent
    assert "skills of your own or of this folder: tides" in words
    path.write_text(path.read_text().replace("moon", "attacker's page"))
    sent, words = systems()
    assert "attacker's page" not in sent
    assert "is not trusted" in words
    sent, _ = systems("--trust-folder")
    assert "attacker's page" in sent
