"""Topics: questions that the user's own systemd or cron starts again and again."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.stage import Explorer
from explorer.cli.schedules.entries import rhythm
from explorer.cli.schedules.topics import Topics
from thoroughness import each_slow_but

HOSTILE = "What's 100% new? $(touch x) `id` \"q\" '; rm -rf ~ #"
CRONTAB = "# mine\nMAILTO=me\n5 4 * * * echo 1 # explorer watch-topic ropes-2\n"
CRON = """#!/bin/sh
if [ "$1" = -l ]; then [ -f "$HOME/crontab" ] && exec cat "$HOME/crontab"; echo "no crontab for you" >&2; exit 1; fi
cat > "$HOME/crontab.new"
[ -s "$HOME/crontab.new" ] && { tail -c 1 "$HOME/crontab.new" | od -c | grep -q '\\\\n' || exit 1; }
mv "$HOME/crontab.new" "$HOME/crontab"
"""
SYSTEMCTL = '#!/bin/sh\necho "$*" >> "$HOME/systemctl.log"\n'
FAILING = '#!/bin/sh\n[ "$2" = enable ] && { echo "no such bus" >&2; exit 1; }\nexit 0\n'
"""Stand-ins: nobody's crontab and nobody's systemd is to be changed by a test."""

Machine = Callable[..., Explorer]


@pytest.fixture
def machine(typed: Explorer, tmp_path: Path) -> Machine:
    """A command line on a machine with these schedulers only."""
    (tmp_path / "bin").mkdir()

    def with_schedulers(**scripts: str) -> Explorer:
        for name, script in scripts.items():
            (tmp_path / "bin" / name).write_text(script)
            (tmp_path / "bin" / name).chmod(0o700)
        # Without the folders of the machine's own schedulers, but with the shell's tools.
        tools = tmp_path / "tools"
        tools.mkdir(exist_ok=True)
        for tool in ("sh", "cat", "tail", "od", "grep", "mv"):
            place = next(Path(folder) / tool for folder in ("/bin", "/usr/bin") if (Path(folder) / tool).exists())
            (tools / tool).unlink(missing_ok=True)
            (tools / tool).symlink_to(place)

        def run(*words: str, **variables: str) -> object:
            return typed("watch-topic", *words, PATH=f"{tmp_path / 'bin'}:{tools}", **variables)

        return run  # type: ignore[return-value]

    return with_schedulers


def kept_files(home: Path) -> str:
    """All that is kept of topics, and all entries."""
    places = [*(home / ".local/state/explorer/topics").glob("*"), *(home / ".config/systemd/user").glob("*")]
    return "".join(path.read_text() for path in [*places, home / "crontab"] if path.is_file())


@pytest.mark.parametrize(
    "before", [pytest.param(None, marks=pytest.mark.slow), pytest.param("", marks=pytest.mark.slow), CRONTAB]
)
def test_a_line_of_the_crontab_comes_and_goes_and_all_others_stay(
    machine: Machine, tmp_path: Path, before: str | None
) -> None:
    """The line has no word of the question and no key; after `remove` the table is what it was, to the byte."""
    watch = machine(crontab=CRON)
    if before is not None:
        (tmp_path / "crontab").write_text(before)
    done = watch("add", HOSTILE, "--every", "6h", "--name", "ropes", "--max-cost", "2", OPENAI_API_KEY="sk-secret-1")
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "crontab").read_text()
    (line,) = (one for one in table.splitlines() if one.endswith("# explorer watch-topic ropes"))
    assert table == (before or "") + line + "\n"
    assert line in done.stdout
    assert re.match(r"0 1,7,13,19 \* \* \* ", line)
    assert line.split(" # ")[0].endswith("-P -m explorer watch-topic run ropes")
    assert "OPENAI_API_KEY" in done.stderr  # it is said that scheduled runs will not have it
    assert "sk-secret-1" not in kept_files(tmp_path) + done.stdout + done.stderr
    (listed,) = json.loads(watch("list", "--output-format", "json").stdout)
    assert (listed["question"], listed["state"], listed["options"]) == (HOSTILE, "never run", ["--max-cost", "2"])
    assert "cron " in watch("list").stdout
    assert watch("remove", "ropes").returncode == 0
    assert (tmp_path / "crontab").read_text() == (before or "")
    assert kept_files(tmp_path) == (before or "")


def test_units_of_systemd_come_and_go(machine: Machine, tmp_path: Path) -> None:
    """Both are shown, written, started, and removed again; a unit of somebody else stays."""
    watch = machine(systemctl=SYSTEMCTL, crontab=CRON)
    done = watch("add", HOSTILE, "--every", "week", "--name", "ropes", XDG_STATE_HOME=f'{tmp_path}/a "b" $c %d')
    assert done.returncode == 0, done.stderr
    folder = tmp_path / ".config/systemd/user"
    service, timer = sorted(folder.iterdir())
    assert service.read_text() in done.stdout + "\n"
    assert r'a \"b\" $$c %%d"' in service.read_text()
    assert "OnCalendar=Mon *-*-* 07:00:00\n" in timer.read_text()
    assert "enable --now explorer-topic-ropes.timer" in (tmp_path / "systemctl.log").read_text()
    assert HOSTILE[:8] not in service.read_text() + timer.read_text()
    foreign = folder / "explorer-topic-mine.timer"
    foreign.write_text("[Timer]\n")
    refused = watch("add", "q q", "--every", "day", "--name", "mine")
    assert refused.returncode == 1
    assert "explorer did not write it" in refused.stderr
    assert watch("remove", "ropes", XDG_STATE_HOME=f'{tmp_path}/a "b" $c %d').returncode == 0
    assert [path.name for path in folder.iterdir()] == [foreign.name]
    assert foreign.read_text() == "[Timer]\n"


def test_an_entry_that_cannot_be_made_leaves_no_topic(machine: Machine) -> None:
    """What the scheduler says is shown."""
    watch = machine(systemctl=FAILING)
    done = watch("add", "q q", "--every", "day")
    assert (done.returncode, "no such bus" in done.stderr) == (1, True)
    assert watch("list").stdout == ""


def test_without_a_scheduler_the_line_is_shown(machine: Machine) -> None:
    """The topic is kept, and can be run by hand; a dry run keeps nothing."""
    watch = machine()
    dry = watch("add", "新闻有什么？", "--every", "day", "--dry-run")
    assert "nothing was written" in dry.stderr
    assert watch("list").stdout == ""
    done = watch("add", "新闻有什么？", "--every", "day")
    assert re.search(r"^0 7 \* \* \* .* watch-topic run topic-[0-9a-f]{6} # ", done.stdout, re.MULTILINE)
    assert "nothing starts it yet" in done.stderr
    assert "新闻有什么？" in watch("show", done.stdout.split()[-1]).stdout


def test_an_entry_that_is_gone_is_told(machine: Machine, tmp_path: Path) -> None:
    """Somebody may have removed the line by hand."""
    watch = machine(crontab=CRON)
    watch("add", "q q", "--every", "day", "--name", "ropes")
    (tmp_path / "crontab").write_text("")
    assert "its entry is missing" in watch("list").stdout
    assert watch("remove", "ropes").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    each_slow_but(2, [
        (("add", "q q", "--every", "5h"), 2, "allowed are hour, 2h"),
        (("add", "q q", "--every", "day", "--at", "24:00"), 2, "like 07:00"),
        (("add", "q q", "--every", "day", "--name", "../x"), 2, "cannot be a topic's name"),
        (("add", "--every", "day"), 2, "there is no question"),
        (("add", "q q", "--every", "day", "-c"), 2, "-c cannot be scheduled"),
        (("add", "q q", "--every", "day", "-o", "x.md"), 2, "put {date} into its name"),
        (("add", "q q", "--every", "day", "-o", "x-{date}.odt"), 2, "the endings are"),
        (("add", "q q", "--every", "day", "--max-cost", "much"), 2, "--max-cost"),
        (("add", "q q", "--every", "day", "--trust-folder"), 2, "explorer trust"),
        (("add", "q q", "--every", "day", "--by", "systemd"), 2, "--by cron"),
        (("run", "../../x"), 5, "there is no topic"),
        (("remove", "ropes"), 5, "watch-topic list"),
    ]),
)  # fmt: skip
def test_what_cannot_be_scheduled_is_refused(
    machine: Machine, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    """One line and a way out; nothing is kept."""
    done = machine()(*words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert kept_files(tmp_path) == ""


def test_a_second_run_of_a_topic_is_locked_out(machine: Machine, tmp_path: Path) -> None:
    """And a damaged file of a topic is none."""
    watch = machine()
    watch("add", "q q", "--every", "day", "--name", "ropes")
    topics = Topics({"HOME": str(tmp_path)})
    (topics.place / "broken.json").write_text("{")
    with topics.locked("ropes"):
        done = watch("run", "ropes")
    assert (done.returncode, "is being explored just now" in done.stderr) == (2, True)
    assert len(watch("list").stdout.splitlines()) == 2


@pytest.mark.slow
def test_each_run_is_given_the_last_one_and_failures_are_seen(machine: Machine, tmp_path: Path) -> None:
    """The second run compares itself with the first; a failed one does not take its place; each writes its own file."""
    watch = machine()
    notes = tmp_path / "notes.md"
    notes.write_text("# Ropes\n\nThe red rope costs 12 euros a metre.\n")
    question = "What do the ropes cost?"
    added = watch("add", question, "--every", "day", "--name", "ropes", "--model", "offline", "--file", "notes.md",
                  "-o", "ropes-{date}.html", "--overwrite")  # fmt: skip
    assert added.returncode == 0, added.stderr
    quiet = {"EXPLORER_SHELL": "off"}
    first = json.loads(watch("run", "ropes", "--output-format", "json", **quiet).stdout)
    notes.write_text("# Ropes\n\nThe red rope costs 15 euros a metre.\n")
    second = json.loads(watch("run", "ropes", "--output-format", "json", **quiet).stdout)
    assert (first["changes"], Path(second["changes"]).name) == (None, "changes.md")
    assert "12 euros" in Path(second["changes"]).read_text()
    assert len(list(tmp_path.glob("ropes-*.html"))) == 1
    notes.unlink()
    failed = watch("run", "ropes", **quiet)
    assert failed.returncode == 5
    (listed,) = json.loads(watch("list", "--output-format", "json").stdout)
    assert (listed["last"]["status"], listed["last"]["exit_code"]) == ("error", 5)
    assert "notes.md" in listed["state"]
    assert Path(listed["last"]["since"]).name == second["run_id"]
    assert "notes.md" in Path(Topics({"HOME": str(tmp_path)}).log("ropes")).read_text()


def test_times_are_those_of_a_whole_day() -> None:
    """Hours keep their distance over midnight, and both schedulers get the same."""
    for every, at, cron, calendar in (
        ("hour", "7:05", "5 * * * *", "*-*-* *:05:00"),
        ("8h", "17:00", "0 1,9,17 * * *", "*-*-* 1,9,17:00:00"),
        ("daily", "23:59", "59 23 * * *", "*-*-* 23:59:00"),
        ("month", "00:00", "0 0 1 * *", "*-*-01 00:00:00"),
    ):
        found = rhythm(every, at)
        assert (found.cron, found.calendar) == (cron, calendar)


def test_what_is_kept_is_the_users_alone(machine: Machine, tmp_path: Path) -> None:
    """Questions are private."""
    machine()("add", "q q", "--every", "day", "--name", "ropes")
    place = Topics({"HOME": str(tmp_path)}).place
    assert [oct(path.stat().st_mode & 0o777) for path in (place, place / "ropes.json")] == ["0o700", "0o600"]
