"""Folders of skills: what the format takes, which of two counts, and what hostile ones get."""

import os
from pathlib import Path

import pytest

from explorer.schema.skill_folder import SkillFolder, SkillOrigin
from explorer.skills.catalog import MAX_LISTED_CHARS, SkillCatalog, built_in_skills, find_skills
from explorer.skills.skill import KEYS, MAX_BODY_CHARS, read_skill
from explorer.skills.tree import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_SKILLS,
    UnusableSkillError,
    files_of,
    folder_digest,
    project_places,
)

HEAD = "name: tides\ndescription: Finds tides. Use it for the sea."


def made(place: Path, name: str = "tides", head: str = HEAD, body: str = "Look at the moon.") -> Path:
    """A skill's folder."""
    folder = place / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\n{body}\n", encoding="utf-8")
    return folder


def found(place: Path, origin: SkillOrigin = SkillOrigin.USER, sha256: str = "") -> SkillCatalog:
    """The skills of one folder."""
    return find_skills([SkillFolder(path=place, origin=origin, sha256=sha256)])


def test_a_skill_has_the_six_keys_of_the_format(tmp_path: Path) -> None:
    """All are read; tools may be a list or a text; numbers in metadata are texts; other keys are passed over."""
    head = (
        f"{HEAD}\nlicense: MIT\ncompatibility: Needs Python\nmetadata:\n  version: 1.0\n"
        "allowed-tools: Read Bash(git:*)\nmodel: opus"
    )
    folder = made(tmp_path, head=head)
    skill = read_skill(folder, SkillOrigin.USER, files_of(folder))
    assert set(skill.fields.model_dump(by_alias=True)) == set(KEYS)
    assert (skill.name, skill.fields.license, skill.fields.metadata) == ("tides", "MIT", {"version": "1.0"})
    assert (skill.fields.allowed_tools, skill.unknown_keys) == (("Read", "Bash(git:*)"), ("model",))
    assert skill.body == "Look at the moon."


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("description: x", "`name` is missing"),
        ("name: tides", "`description` is missing"),
        ("name: Tides\ndescription: x", "`name` has to be"),
        ("name: -tides\ndescription: x", "`name` has to be"),
        ("name: ti--des\ndescription: x", "`name` has to be"),
        (f"name: {'a' * 65}\ndescription: x", "`name` has to be"),
        ("name: t\u0456des\ndescription: x", "`name` has to be"),
        ('name: "tides\\n"\ndescription: 3', "`description` has to be"),
        ("name: waves\ndescription: x", "`name` is waves, and its folder is called tides"),
        (f"name: tides\ndescription: {'x' * 1025}", "`description` has to be"),
        ('name: tides\ndescription: " "', "`description` has to be"),
        (f"{HEAD}\ncompatibility: {'x' * 501}", "`compatibility` has to be"),
        (f"{HEAD}\nmetadata: [a]", "`metadata` has to be"),
        (f"{HEAD}\nallowed-tools: {{a: b}}", "`allowed-tools` has to be"),
        ("name: tides\ndescription: Use it: for the sea", "quotation marks"),
        ("name: &a tides\ndescription: *a", "aliases"),
        ("- tides", "not a list of fields"),
    ],
)
def test_wrong_frontmatter_is_named(head: str, problem: str, tmp_path: Path) -> None:
    """One clear line says which key is wrong and what it takes; the other skills stay usable."""
    made(tmp_path, head=head)
    made(tmp_path, "good", "name: good\ndescription: x")
    catalog = found(tmp_path)
    assert list(catalog.skills) == ["good"]
    (left,) = catalog.left_out
    assert problem in left.why
    assert "\n" not in left.why


def test_all_problems_are_listed(tmp_path: Path) -> None:
    """Who corrects a skill sees everything at once."""
    folder = made(tmp_path, head="name: Tides\nmetadata: 3", body="")
    with pytest.raises(UnusableSkillError) as refused:
        read_skill(folder, SkillOrigin.USER, files_of(folder))
    assert len(refused.value.problems) == 4


@pytest.mark.parametrize("kind", ["file", "folder", "skill", "pipe", "parent"])
def test_links_and_devices_are_never_followed(kind: str, tmp_path: Path) -> None:
    """A skill with a link, or that is one, is left out as a whole, and nothing behind the link is read."""
    secret = made(tmp_path / "elsewhere", "secret", "name: secret\ndescription: x")
    place = tmp_path / "skills"
    folder = made(place)
    match kind:
        case "file":
            (folder / "a.md").symlink_to(secret / "SKILL.md")
        case "folder":
            (folder / "references").symlink_to(secret)
        case "skill":
            (place / "secret").symlink_to(secret)
        case "pipe":
            os.mkfifo(folder / "a.md")
        case _:
            (folder / "SKILL.md").unlink()
            (folder / "SKILL.md").symlink_to(secret / "SKILL.md")
    catalog = found(place)
    assert "secret" not in catalog.skills
    (left,) = catalog.left_out
    assert "link" in left.why or "plain file" in left.why


def test_a_place_that_is_a_link_is_none_of_the_project(tmp_path: Path) -> None:
    """Neither `skills` nor a folder above it may lead elsewhere."""
    made(tmp_path / "elsewhere" / "skills")
    project = tmp_path / "project"
    project.mkdir()
    (project / "skills").symlink_to(tmp_path / "elsewhere" / "skills")
    (project / ".agents").symlink_to(tmp_path / "elsewhere")
    made(project / ".explorer" / "skills")
    assert project_places(project) == [project / ".explorer" / "skills"]


@pytest.mark.slow
def test_what_is_huge_is_left_out(tmp_path: Path) -> None:
    """A big file, many files, deep folders, a long text, many skills: each has a limit, and says so."""
    with (made(tmp_path, "big", "name: big\ndescription: x") / "data").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    many = made(tmp_path, "many", "name: many\ndescription: x")
    for number in range(MAX_FILES):
        (many / f"{number}.md").touch()
    (made(tmp_path, "deep", "name: deep\ndescription: x") / "a/b/c/d/e/f").mkdir(parents=True)
    made(tmp_path, "long", "name: long\ndescription: x", "x" * (MAX_BODY_CHARS + 1))
    whys = {Path(one.place).name: one.why for one in found(tmp_path).left_out}
    assert {name: bool(why) for name, why in whys.items()} == dict.fromkeys(("big", "deep", "long", "many"), True)
    crowd = tmp_path / "crowd"
    for number in range(MAX_SKILLS + 3):
        made(crowd, f"s{number:03}", f"name: s{number:03}\ndescription: {'x' * 1024}")
    catalog = found(crowd)
    assert len(catalog.skills) == MAX_SKILLS
    assert catalog.left_out[0].why.startswith("3 of its skills")
    assert len(catalog.listing) < MAX_LISTED_CHARS * 1.2


def test_a_project_shadows_nothing_and_the_user_replaces(tmp_path: Path) -> None:
    """Of one name: a project's skill never counts before another, a user's counts before a built-in one."""
    name = "news-digest"
    folders = [
        SkillFolder(path=tmp_path / place, origin=origin)
        for place, origin in (("one", SkillOrigin.PROJECT), ("two", SkillOrigin.PROJECT))
    ]
    for folder in folders:
        made(folder.path, name, f"name: {name}\ndescription: x")
        made(folder.path)
    catalog = find_skills([built_in_skills(), *folders])
    assert catalog.skills[name].origin is SkillOrigin.BUILT_IN
    assert catalog.skills["tides"].folder == tmp_path / "one" / "tides"
    assert [one.why for one in catalog.left_out] == [
        "a built-in skill has the name news-digest; give it another",
        "a built-in skill has the name news-digest; give it another",
        f"the one in {tmp_path / 'one' / 'tides'} has the name tides; give it another",
    ]
    own = SkillFolder(path=tmp_path / "one", origin=SkillOrigin.USER)
    assert find_skills([built_in_skills(), own]).skills[name].folder == tmp_path / "one" / name


def test_skills_of_a_run_never_count(tmp_path: Path) -> None:
    """What lies in a run's folder was written by agents, whoever names it."""
    run = tmp_path / "workspace" / "run"
    made(run / "notes" / "skills")
    (run / ".explorer").mkdir()
    (run / ".explorer" / "journal.jsonl").touch()
    catalog = found(run / "notes" / "skills")
    assert catalog.skills == {}
    assert "run's folder" in catalog.left_out[0].why


def test_only_what_was_trusted_counts(tmp_path: Path) -> None:
    """A file that is changed, added or removed after the consent takes the whole folder out; a read one stays."""
    folder = made(tmp_path)
    (folder / "scripts").mkdir()
    (folder / "scripts" / "a.py").write_text("print(1)")
    digest = folder_digest(tmp_path)
    skill = found(tmp_path, SkillOrigin.PROJECT, digest).skills["tides"]
    (folder / "scripts" / "a.py").write_text("print(2)")
    assert found(tmp_path, SkillOrigin.PROJECT, digest).skills == {}
    with pytest.raises(UnusableSkillError, match="changed since"):
        skill.read("scripts/a.py")
    (folder / "scripts" / "a.py").write_text("print(1)")
    assert folder_digest(tmp_path) == digest
    made(tmp_path, "waves", "name: waves\ndescription: x")
    assert found(tmp_path, SkillOrigin.PROJECT, digest).skills == {}


def test_invisible_words_are_dropped(tmp_path: Path) -> None:
    """What nobody saw when they consented, no model reads."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    made(tmp_path, head=f"{HEAD}{hidden}", body=f"Look.{hidden}")
    catalog = found(tmp_path)
    assert catalog.skills["tides"].body == "Look."
    assert catalog.listing.endswith("- tides: Finds tides. Use it for the sea.")


def test_the_built_in_skills_fit_the_format() -> None:
    """Five, each valid, with texts of the length that the format advises, and links that lead to its files."""
    catalog = find_skills([built_in_skills()])
    assert sorted(catalog.skills) == [
        "chinese-report",
        "company-brief",
        "comparing-technologies",
        "literature-review",
        "news-digest",
    ]
    assert catalog.left_out == ()
    for skill in catalog.skills.values():
        assert skill.unknown_keys == ()
        assert len(skill.body) < 20_000
        assert len(skill.fields.description) < 500
        assert all(path in skill.body for path in skill.others)
