"""`doctor RUN`: how a run stands, what is damaged, and what can be done."""

import json
import zlib
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.journal.codec import GENESIS, encode, examine
from explorer.journal.listing import read_records

STORY = "stories/900000012-the-maintainer-of-tern-tls-is-stepping-down.md"


def journal(folder: Path) -> Path:
    """A run's journal."""
    return folder / ".explorer" / "journal.jsonl"


def damage(folder: Path, record: int) -> None:
    """Flip a bit of a record."""
    lines = journal(folder).read_bytes().splitlines(keepends=True)
    line = bytearray(lines[record - 1])
    line[len(line) // 2] ^= 1
    journal(folder).write_bytes(b"".join([*lines[: record - 1], bytes(line), *lines[record:]]))


def found(here: Explorer, code: int) -> dict[str, dict[str, str]]:
    """The findings on the latest run, by what was looked at."""
    done = here("doctor", "latest", "--output-format", "json")
    assert done.returncode == code, done.stdout
    return {finding["name"]: finding for finding in json.loads(done.stdout)}


def test_a_whole_run_is_fine(kept_run: Path, here: Explorer) -> None:
    """Every line says so, and nothing is written."""
    findings = found(here, 0)
    assert set(findings) == {"journal", "version", "state", "lock", "sources", "files", "report"}
    assert {finding["level"] for finding in findings.values()} == {"ok"}
    assert findings["state"]["words"] == "complete"
    assert findings["lock"]["words"] == "free"
    assert here("doctor", kept_run.name).stdout.count("\n") == 7


@pytest.mark.slow
def test_a_torn_tail_is_explained_and_mended_by_going_on(kept_run: Path, here: Explorer) -> None:
    """Not damage: how many bytes, and what becomes of them."""
    journal(kept_run).write_bytes(journal(kept_run).read_bytes()[:-20])
    findings = found(here, 0)
    assert findings["journal"]["level"] == "warn"
    assert "torn tail of" in findings["journal"]["words"]
    assert "explorer resume" in findings["journal"]["fix"]
    assert "unfinished" in findings["state"]["words"]
    assert here("resume", "latest", "-q").returncode == 0
    assert found(here, 0)["journal"]["level"] == "ok"
    assert "journal repaired" in here("show", "--timeline").stdout


@pytest.mark.slow
def test_a_damaged_record_is_named_and_what_stands_before_it_can_be_gone_on_with(
    kept_run: Path, typed: Explorer, here: Explorer
) -> None:
    """Exit code 1; the run can be exported for safekeeping, and forked from its last good record."""
    good = read_records(kept_run)[:59]
    damage(kept_run, 60)
    finding = found(here, 1)["journal"]
    assert "damaged at record 60" in finding["words"]
    assert "records 1 to 59 are good" in finding["words"]
    assert f"explorer runs export {kept_run.name}" in finding["fix"]
    assert f"explorer fork {kept_run.name} --at 59" in finding["fix"]
    for command in ("show", "resume", "watch"):
        done = here(command, "latest")
        assert (done.returncode, done.stdout) == (1, "")
        assert "record 60" in done.stderr
        assert "explorer doctor" in done.stderr
    assert [row["status"] for row in json.loads(here("runs", "--output-format", "json").stdout)] == ["damaged"]
    assert here("runs", "export", "latest", "-o", "kept.tar.gz").returncode == 0
    assert here("runs", "import", "kept.tar.gz").returncode == 1
    refused = here("fork", "latest", "--at", "70")
    assert refused.returncode == 1
    assert f"explorer fork {kept_run.name} --at 59" in refused.stderr
    done = typed("fork", "latest", "--at", "59", "-q", "--output-format", "json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "complete"), done.stderr
    assert read_records(Path(json.loads(done.stdout)["folder"]))[:59] == good


def test_a_newer_version_is_told(kept_run: Path, here: Explorer) -> None:
    """By its number, with the way to update."""
    last = read_records(kept_run)[0]
    line, _ = encode(last.model_copy(update={"v": 99}), GENESIS)
    journal(kept_run).write_bytes(line)
    findings = found(here, 1)
    assert "version 99" in findings["version"]["words"]
    assert "update explorer" in findings["version"]["fix"]
    assert findings["state"]["level"] == "fail"


@pytest.mark.slow
def test_missing_and_changed_sources_and_files_are_named(kept_run: Path, here: Explorer) -> None:
    """By name, each kind apart; a fork makes the files anew."""
    (kept_run / ".explorer" / "sources" / "S2.md").unlink()
    changed = kept_run / ".explorer" / "sources" / "S3.md"
    changed.write_text(changed.read_text() + "more")
    (kept_run / STORY).unlink()
    (kept_run / "overview.md").write_text("other words")
    findings = found(here, 1)
    assert findings["sources"]["words"] == "1 missing: S2; 1 not as the journal has them: S3"
    assert findings["files"]["words"] == f"1 missing: {STORY}; 1 not as the journal has them: overview.md"
    assert here("fork", "latest", "--no-run").returncode == 0
    assert found(here, 1)["files"]["level"] == "ok"


def test_a_report_that_is_gone_is_missed(kept_run: Path, here: Explorer) -> None:
    """A run that has ended has one; the draft alone is none."""
    (kept_run / "report.md").unlink()
    findings = found(here, 1)
    assert findings["report"]["level"] == "fail"
    assert f"explorer resume {kept_run.name}" in findings["report"]["fix"]


def test_a_changed_report_is_noticed(kept_run: Path, here: Explorer) -> None:
    """Its draft is what the journal knows."""
    (kept_run / ".explorer" / "draft.md").unlink()
    assert "report.md" in found(here, 1)["files"]["words"]


@pytest.mark.parametrize(
    "line",
    [b"[]", b"{}", b'{"v":"1","seq":1,"prev":"00000000","at":"x"}', b'{"v":0,"seq":1,"prev":"00000000","at":"x"}',
     b'{"v":1,"seq":1,"prev":"00000000","at":"x"}', b"\xff\xfe", b"[" * 100_000],
)  # fmt: skip
def test_a_line_with_a_sound_checksum_and_no_sense_is_damage(line: bytes) -> None:
    """A checksum can be made by anyone: such a line is no bug's traceback."""
    head = line[:-1] if line.endswith(b"}") else line
    sealed = head + b',"crc":"' + f"{zlib.crc32(head):08x}".encode() + b'"}\n'
    scan = examine(sealed)
    assert scan.records == ()
    assert scan.damage is not None
    assert "record 1 is intact but not understood" in scan.damage.message


def test_an_unknown_run_is_not_found(here: Explorer) -> None:
    """Exit code 5, as everywhere."""
    assert here("doctor", "2026").returncode == 5
