"""An analysis that shows: figures and charts made in the sandbox from a recorded day, and what becomes of them."""

import csv
import io
import json
import re
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pydantic
import pytest
import yaml

from attacks.world import events
from command import begin, explorer
from explorer.agents.call_agent import CallAgentArguments, task_text
from explorer.journal.run_state import RunState
from explorer.sandbox.confinement import SandboxSpec, SandboxTier
from explorer.sandbox.jobs import GONE, Jobs
from explorer.sandbox.resource_monitor import files_of
from explorer.sandbox.selection import candidates, python_folders
from explorer.sandbox.shell import Shell
from explorer.schema.events import NoteAdded, Status, ToolFinished, WrittenFile
from explorer.schema.reasons import NoteReason
from explorer.text.rendering import fenced_lines, without_marks
from explorer.tools.shell import is_finding, shell_tools
from explorer.workspace.workspace import Workspace
from model_servers import Asked, OpenAIServer, Reply
from sandbox.cages import cage, kill_with_job, none_is_left
from sources.loopback import replaying
from team_script import body_of, only_run, role_of
from tool_call import NO_RUN, call_tool

TIERS = ("bubblewrap", "landlock")
WITH = ("matplotlib", "plain Python")
MARK = "scratch/.signs/go-71c4"
STORIES = 100
PREFIX = str(Path(sys.prefix).resolve())
FIGURES = """\
import collections, csv, statistics
rows = list(csv.DictReader(open("data/stories.csv", encoding="utf-8")))
points, comments = ([int(row[name]) for row in rows] for name in ("points", "comments"))
hours, sites = collections.Counter(), collections.Counter()
for row in rows:
    hours[row["time"][11:13]] += int(row["points"])
    sites[row["site"] or "text"] += 1
print("points by hour:", ", ".join(f"{hour}h {hours[hour]}" for hour in sorted(hours)))
print("stories by site:", ", ".join(f"{site} {count}" for site, count in sites.most_common(5)))
print(f"correlation of points and comments: {statistics.correlation(points, comments):.3f}")
"""
READ = """\
import collections, csv, sys
hours = collections.Counter()
for row in csv.DictReader(open("data/stories.csv", encoding="utf-8")):
    hours[int(row["time"][11:13])] += int(row["points"])
top, place = max(hours.values()), sys.argv[1]
"""
CHARTS = {
    "matplotlib": """\
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(6.4, 4.0))
axes.bar(range(24), [hours[hour] for hour in range(24)])
axes.set_xlabel("hour of posting (UTC)")
axes.set_ylabel("points")
figure.savefig(f"{place}/points.png", dpi=100)
figure.savefig(f"{place}/points.svg")
""",
    "plain Python": """\
import struct, zlib
bars = [round(360 * hours[hour] / top) for hour in range(24)]
drawn = "".join(f'<rect x="{20 + 25 * n}" y="{380 - bar}" width="20" height="{bar}"/>' for n, bar in enumerate(bars))
with open(f"{place}/points.svg", "w", encoding="utf-8") as file:
    file.write('<svg xmlns="http://www.w3.org/2000/svg" width="640" height="400"><title>Points by hour</title>')
    file.write(drawn + "</svg>\\n")
rows = b"".join(
    b"\\0" + bytes(0 if x >= 20 and x < 620 and 380 - bars[(x - 20) // 25] <= y < 380 else 255 for x in range(640))
    for y in range(400)
)
with open(f"{place}/points.png", "wb") as file:
    file.write(b"\\x89PNG\\r\\n\\x1a\\n")
    head = struct.pack(">2L5B", 640, 400, 8, 0, 0, 0, 0)
    for kind, body in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        file.write(struct.pack(">L", len(body)) + kind + body + struct.pack(">L", zlib.crc32(kind + body)))
""",
}


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, str]]:
    """Settings that point Hacker News at the recorded day."""
    with replaying() as url:
        yield {"EXPLORER_HN_API_URL": f"{url}/v0", "EXPLORER_ALLOW_HOSTS": "127.0.0.1"}


class Analysts:
    """Models of a team whose analyzer computes, draws in the background, and thinks on when the drawing runs."""

    def __init__(self, drawn_with: str, place: str) -> None:
        self.place = place
        self._chart = READ + CHARTS[drawn_with]
        self.is_drawing = threading.Event()
        self.is_resumed = False

    def __call__(self, asked: Asked) -> Reply:
        """Answer by role."""
        role = role_of(asked)
        return {"orchestrator": self._lead, "searcher": _search, "analyzer": self._analyze, "writer": self._write}[
            role
        ](asked)

    @property
    def job(self) -> str:
        """Waits for a sign, then draws."""
        sign = "mkdir -p scratch/.signs; touch scratch/.signs/runs"
        return f"{sign}; until [ -e {MARK} ]; do sleep 0.05; done; python analysis/chart.py {self.place}; echo drawn"

    def _lead(self, asked: Asked) -> Reply:
        def helper(role: str, task: str, *files: str) -> Reply:
            message = {"agent_type": role, "task_description": task, "context_files": list(files)}
            return Reply(calls=[("call_agent", message)])

        steps = [
            helper("searcher", "List the top stories, and write them as a table into data/stories.csv."),
            helper("analyzer", "Compute from the table, and draw it.", "data/stories.csv"),
            helper("writer", "Write it.", "analysis/analysis.md", "data/stories.csv", f"{self.place}/points.png"),
            Reply(calls=[("read_file", {"filepath": "report.md"})]),
            Reply(calls=[("finish_exploration", {"summary": "Points follow comments."})]),
        ]
        return steps[len(asked.results)]

    def _analyze(self, asked: Asked) -> Reply:
        steps = [
            ("write_file", {"filepath": "analysis/figures.py", "content": FIGURES}),
            ("write_file", {"filepath": "analysis/chart.py", "content": self._chart}),
            ("execute_shell", {"command": "python analysis/figures.py"}),
            ("execute_shell", {"command": self.job, "run_in_background": True}),
            ("execute_shell", {"command": "until [ -e scratch/.signs/runs ]; do sleep 0.05; done; cat /proc/uptime"}),
            ("execute_shell", {"command": f"touch {MARK}; ls {self.place}"}),
            ("execute_shell", {"command": f"{self.job} again", "run_in_background": True}),
            ("get_shell_output", {"bash_id": "bash_2", "block": True}),
        ]
        done = len(asked.results)
        if done == 5 and not self.is_resumed:
            self.is_drawing.set()
            return Reply(stalls="silent")
        if done < len(steps):
            return Reply(calls=[steps[done]])
        if done == len(steps):
            figures = re.findall(r"^(?:points by|stories by|correlation).*$", asked.results[2], re.MULTILINE)
            content = "# Figures of the day\n\n" + "\n".join(f"- {line}" for line in figures)
            return Reply(calls=[("write_file", {"filepath": "analysis/analysis.md", "content": content})])
        return Reply(
            text=f"The figures are in analysis/analysis.md, the chart is {self.place}/points.png.\nNot known: why."
        )

    def _write(self, asked: Asked) -> Reply:
        if not asked.results:
            return Reply(
                calls=[("read_file", {"filepath": name}) for name in ("analysis/analysis.md", "data/stories.csv")]
            )
        if len(asked.results) == 2:
            shown = [re.sub(r"^\s*\d+\t", "", line) for line in fenced_lines(asked.results[1])]
            rows = list(csv.DictReader(shown))[:3]
            facts = "\n".join(f"- {row['title']}: {row['points']} points [{row['source']}]" for row in rows)
            content = (
                "# How points lay over the day\n\nThe first of the list were these, and the chart shows all of it.\n\n"
                f"{facts}\n\n![Points of the stories by hour of posting]({self.place}/points.png)\n\n"
                f"![The same]({self.place}/points.svg)\n"
            )
            return Reply(calls=[("write_file", {"filepath": "report.md", "content": content})])
        return Reply(text="The report shows the chart.\nNot known: why.")


def _search(asked: Asked) -> Reply:
    if not asked.results:
        return Reply(calls=[("get_hn_stories", {"limit": STORIES})])
    if len(asked.results) == 1:
        return Reply(calls=[("write_file", {"filepath": "data/stories.csv", "content": _table(asked.results[0])})])
    return Reply(text="The stories are in data/stories.csv.\nNot known: nothing.")


def _table(listed: str) -> str:
    """The stories of a result as CSV."""
    found = re.findall(
        r"\[(S\d+)\] (.+?)(?: \(([^()]+\.[^()]+)\))?\n"
        r"\s+id (\d+) \| (\d+) points \| (\d+) comments .*?\| (\d{4}-\S+) \|",
        listed,
    )
    message = io.StringIO()
    table = csv.writer(message, lineterminator="\n")
    table.writerow(["source", "title", "site", "id", "points", "comments", "time"])
    table.writerows(found)
    return message.getvalue()


def _draws_with(drawn_with: str) -> str:
    """Where charts can be saved here; the test is skipped where they cannot be drawn so."""
    if not candidates():
        pytest.skip("this machine has no sandbox")
    if drawn_with == "matplotlib" and find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed (uv sync --group charts)")
    return "analysis" if candidates()[0][0].tier is SandboxTier.BUBBLEWRAP else "scratch"


@pytest.mark.slow
@pytest.mark.parametrize("drawn_with", WITH)
def test_a_chart_of_the_real_day_gets_into_the_report(
    drawn_with: str, tmp_path: Path, services: dict[str, str]
) -> None:
    """Killed while the chart is drawn, the run tells its analyzer, which draws again; the report shows the chart."""
    script = Analysts(drawn_with, _draws_with(drawn_with))
    with OpenAIServer(script) as model:
        server = {"OPENAI_API_KEY": "sk-test-12345678", "OPENAI_BASE_URL": model.url}
        settings = {**services, **server, "EXPLORER_SHELL": "auto"}
        process = begin("How did points lie over the day?", cwd=tmp_path, settings=settings)
        assert script.is_drawing.wait(200), process.communicate(timeout=1)
        kill_with_job(process, MARK)
        script.is_resumed = True
        done = explorer("resume", "latest", cwd=tmp_path, settings=settings)
    assert done.returncode == 0, done.stderr
    assert none_is_left(MARK)
    run = only_run(tmp_path / "workspace")
    _check_journal(run, script.place)
    _check_figures(run)
    _check_report(run, script.place)
    _check_around(run, script.place, tmp_path)


def _check_journal(run: Path, place: str) -> None:
    """The job is told as gone, and the index has what was found and drawn, and nothing else."""
    record = events(run)
    ended = [one.text for one in record if isinstance(one, NoteAdded) and one.reason == NoteReason.JOB_ENDED]
    assert GONE in ended[0]
    drawn = next(one for one in record if isinstance(one, ToolFinished) and one.name == "get_shell_output")
    assert drawn.content.startswith("bash_2: ended with exit code 0 after ")
    files = RunState.of(record).files
    charts = {f"{place}/points.png", f"{place}/points.svg"}
    written = {"data/stories.csv", "analysis/figures.py", "analysis/chart.py", "analysis/analysis.md", "report.md"}
    assert set(files) == written | charts
    assert {file.path for file in drawn.files} == charts
    assert files[f"{place}/points.png"].title == "a PNG image of 640 x 400 pixels"
    assert files[f"{place}/points.svg"].title.startswith("an SVG image")
    answers = [one.content for one in record if isinstance(one, ToolFinished) and one.name == "call_agent"]
    index = {entry["path"]: entry for entry in json.loads(without_marks(answers[1]))["files"]}
    size = (run / place / "points.png").stat().st_size
    assert index[f"{place}/points.png"] == {
        "path": f"{place}/points.png", "title": "a PNG image of 640 x 400 pixels", "lines": 0, "bytes": size
    }  # fmt: skip


def _check_figures(run: Path) -> None:
    """What was computed in the sandbox is what is computed here."""
    rows = list(csv.DictReader((run / "data" / "stories.csv").read_text().splitlines()))
    assert len(rows) > STORIES * 0.8
    correlation = statistics.correlation([int(row["points"]) for row in rows], [int(row["comments"]) for row in rows])
    hours: Counter[str] = Counter()
    for row in rows:
        hours[row["time"][11:13]] += int(row["points"])
    output = (run / "analysis" / "analysis.md").read_text()
    assert f"correlation of points and comments: {correlation:.3f}" in output
    assert ", ".join(f"{hour}h {hours[hour]}" for hour in sorted(hours)) in output
    assert "stories by site: " in output


def _check_report(run: Path, place: str) -> None:
    """It is complete, shows both images, and the check of its citations finds nothing wrong."""
    report = (run / "report.md").read_text()
    head = yaml.safe_load(report.split("---\n")[1])
    assert head["status"] == Status.COMPLETE
    assert f"![Points of the stories by hour of posting]({place}/points.png)" in body_of(report)
    assert f"![The same]({place}/points.svg)" in body_of(report)
    counts = head["citations"]
    assert counts["total"] == counts["supported"] == 3, counts
    assert "source missing" not in report
    assert not (run / "analysis" / "__pycache__").exists()


def _check_around(run: Path, place: str, folder: Path) -> None:
    """The commands that look at a run, check it, carry it and branch it off know its charts."""
    chart = (run / place / "points.png").read_bytes()
    shown = explorer("show", "latest", cwd=folder)
    assert f"{place}/points.png" in shown.stdout
    healthy = explorer("doctor", "latest", cwd=folder)
    assert healthy.returncode == 0, healthy.stdout
    assert "7 files, as the journal has them" in healthy.stdout
    forked = explorer("fork", "latest", "--no-run", cwd=folder)
    assert forked.returncode == 0, forked.stderr
    (fork,) = [path for path in (folder / "workspace").glob("[!.]*") if path != run]
    assert (fork / place / "points.png").read_bytes() == chart
    packed = explorer("runs", "export", run.name, "--output", "run.tar.gz", cwd=folder)
    assert packed.returncode == 0, packed.stderr
    taken = explorer("runs", "import", "run.tar.gz", "--workspace", "other", cwd=folder)
    assert taken.returncode == 0, taken.stderr
    assert (folder / "other" / run.name / place / "points.png").read_bytes() == chart


class Cell:
    """The shell's tools over one way to hold commands, in a run's folder."""

    def __init__(self, tier: str, folder: Path) -> None:
        for name in (".explorer", "scratch"):
            (folder / name).mkdir()
        self.shell = Shell(cage(tier), SandboxSpec(folder, readable=python_folders()))
        self.workspace = Workspace(folder)
        self.tool = shell_tools(self.shell, Jobs(self.shell), self.workspace)[0]

    async def run(self, command: str) -> tuple[str, dict[str, WrittenFile]]:
        """What the model reads of a command, and what gets into the index, by path."""
        try:
            result = await call_tool(self.tool, replace(NO_RUN, call="analyzer-1.t1.1"), command=command)
        finally:
            await self.shell.aclose()
        return result.content, {file.path: file for file in result.metadata["files"]}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_python_is_the_engines_own(tier: str, tmp_path: Path) -> None:
    """`python` and `python3` are there with the engine's libraries, which cannot be changed."""
    look = "import pydantic, sys; print(sys.prefix, pydantic.__file__); open(pydantic.__file__, 'a')"
    output, _ = await Cell(tier, tmp_path).run(f'python -c "{look}"; python3 -c "{look}"')
    assert output.count(f"{PREFIX} {pydantic.__file__}") == 2
    assert output.count("OSError: [Errno 30]") + output.count("PermissionError") == 2


@pytest.mark.parametrize("tier", TIERS)
async def test_the_index_has_findings_and_no_junk(tier: str, tmp_path: Path) -> None:
    """Pictures and tables are described for who cannot open them; caches and hidden files are left out."""
    cell = Cell(tier, tmp_path)
    output, files = await cell.run(
        "cd scratch; mkdir -p __pycache__ .cache/matplotlib sub/.hidden $HOME/.config; touch __pycache__/a.pyc"
        " .cache/matplotlib/fonts.json sub/.hidden/x .rc $HOME/.config/rc;"
        "echo 'a,b' > t.csv; head -c 9M /dev/zero > big;"
        "printf '\\211PNG\\r\\n\\032\\n\\0\\0\\0\\015IHDR\\0\\0\\002\\200\\0\\0\\001\\220' > c.png;"
        'echo \'<?xml version="1.0"?><svg xmlns="x"><title> Points by hour </title></svg>\' > c.svg'
    )
    assert {path: file.title for path, file in files.items()} == {
        "scratch/c.png": "a PNG image of 640 x 400 pixels",
        "scratch/c.svg": "an SVG image: Points by hour",
        "scratch/t.csv": "a,b",
    }
    assert "files written: scratch/c.png (24 bytes), scratch/c.svg (" in output
    assert output.splitlines()[1].endswith(
        "scratch/t.csv (4 bytes) and 1 that cannot be listed (too big, or gone again)"
    )
    asked = CallAgentArguments(agent_type="writer", task_description="Write.", context_files=["scratch/c.png"])
    assert "- scratch/c.png (0 lines, 24 bytes): a PNG image of 640 x 400 pixels" in task_text(
        asked, cell.workspace, {}
    )


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_a_plotting_library_leaves_nothing_behind(tier: str, tmp_path: Path) -> None:
    """What matplotlib keeps for itself, such as its list of fonts, is neither in the index nor beside the chart."""
    if find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed (uv sync --group charts)")
    draw = (
        "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('scratch/a.png'); plt.savefig('scratch/a.svg')"
    )
    output, files = await Cell(tier, tmp_path).run(f'python -c "{draw}"')
    assert set(files) == {"scratch/a.png", "scratch/a.svg"}, output
    assert {path for path in files_of(tmp_path, 1_000) if is_finding(path)} == {"scratch/a.png", "scratch/a.svg"}


def test_the_description_says_what_is_there(tmp_path: Path) -> None:
    """The model is told which libraries it has for charts, and which way out, before it tries."""
    plain = Cell("unconfined", tmp_path).tool.description
    assert "in a sandbox without network. Writable: the run's folder, which is the current one" in plain
    has = find_spec("matplotlib") is not None
    assert ("matplotlib" in plain) is has
    assert ("save charts as PNG or SVG" if has else "write charts as SVG") in plain
    shell = Shell(cage("unconfined"), SandboxSpec(tmp_path, proxy=tmp_path / "proxy"))
    assert (
        "whose only network is a proxy to a few hosts"
        in shell_tools(shell, Jobs(shell), Workspace(tmp_path))[0].description
    )
