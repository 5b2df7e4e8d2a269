"""What a turn costs: the engine beside the SDKs' own loop, a lean one and bare HTTP, in one run on one machine.

    uv run python bench/run.py [SCENARIO...] [--wire openai|anthropic] [--small] [--check] [--json FILE]

Scenarios: research-small, fan-out-10, fan-out-100, fan-out-500, long-run, start, resume-10k; all of them by default.
Each cell is a process of its own against a model server in another one, on loopback. Compare figures of one run only.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from checks import problems
from scenarios import JsonObject, scenario_named
from startup import resume_row, start_rows
from wires import ANTHROPIC, OPENAI

HERE = Path(__file__).resolve().parent
CONTESTANTS = ("engine", "engine-no-journal", "engine-no-compaction", "lean-sdk", "bare-http", "plain-sdk")
ALL = ("start", "resume-10k", "research-small", "fan-out-10", "fan-out-100", "fan-out-500", "long-run")
SIZES = {"long-run": "long-run-300"}
SMALL_SIZES = {"long-run": "long-run-60", "fan-out-100": "fan-out-20", "fan-out-500": "fan-out-40"}
SMALL_CONTESTANTS = ("engine", "engine-no-journal", "lean-sdk")
SMALL = ("start", "resume-10k", "research-small", "fan-out-100", "long-run")
CELL_S = 600


@contextmanager
def model_server(latency_s: float) -> Generator[str]:
    """A server in a process of its own; its URL."""
    command = [sys.executable, str(HERE / "model_server.py"), "--latency", str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        finally:
            process.stdin.close()


def cell(contestant: str, name: str, wire: str, flags: Sequence[str]) -> JsonObject:
    """One measurement, with what the server saw of it."""
    scenario = scenario_named(name)
    with model_server(scenario.latency_s) as url:
        command = [sys.executable, str(HERE / "cell.py"), contestant, name, wire, url, *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CELL_S)
        if done.returncode:
            raise SystemExit(f"{contestant} on {name} over {wire} failed:\n{done.stderr[-3000:]}")
        row: JsonObject = {"scenario": name, "wire": wire, "contestant": contestant, **json.loads(done.stdout)}
        row["wall_to_ideal"] = round(row["wall_s"] / scenario.ideal_s, 2) if scenario.ideal_s else None
        return row | stats(url)


def stats(url: str) -> JsonObject:
    """What a server was sent."""
    connection = HTTPConnection(url.removeprefix("http://"), timeout=CELL_S)
    connection.request("GET", "/stats")
    return json.loads(connection.getresponse().read())


COLUMNS = (
    ("contestant", "contestant", 21),
    ("ms/turn", "cpu_ms_a_turn", 9),
    ("cpu s", "cpu_s", 8),
    ("wall s", "wall_s", 8),
    ("/ideal", "wall_to_ideal", 7),
    ("peak MB", "peak_mb", 8),
    ("sent MB", "sent_mb", 8),
    ("prefix", "prefix_share", 8),
    ("cache", "cache_share", 8),
    ("conns", "connections", 6),
    ("growth", "growth", 7),
    ("disk B", "journal_bytes_a_turn", 8),
    ("head B", "helper_head_bytes", 8),
)


def show(rows: Sequence[JsonObject]) -> None:
    """One table a scenario and wire."""
    print(f"\n{rows[0]['scenario']} over {rows[0]['wire']}, {rows[0]['turns']} turns")
    print("".join(f"{title:>{width}}" for title, _, width in COLUMNS))
    for row in rows:
        shown = row | {"sent_mb": round(row["bytes"] / 1e6, 2)}
        cells = ((shown.get(name), width) for _, name, width in COLUMNS)
        print("".join(f"{'-' if value is None else value!s:>{width}}" for value, width in cells), flush=True)


def measured(names: Sequence[str], wires: Sequence[str], asked: argparse.Namespace) -> Iterator[JsonObject]:
    """All rows, shown as they come."""
    sizes = SIZES | (SMALL_SIZES if asked.small else {})
    flags = ["--uvloop"] if asked.uvloop else []
    for name in names:
        if name == "start":
            yield from _told(start_rows(wires))
        elif name == "resume-10k":
            yield from _told([resume_row(1_000 if asked.small else 10_000)])
        else:
            for wire in wires:
                some = [one for one in asked.contestants if one != "engine-no-compaction" or name == "long-run"]
                rows = [cell(one, sizes.get(name, name), wire, flags) for one in some]
                show(rows)
                yield from rows


def _told(rows: Sequence[JsonObject]) -> Sequence[JsonObject]:
    print()
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    return rows


def main() -> int:
    """Measure, show, write, check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="; ".join(ALL))
    parser.add_argument("--wire", choices=(OPENAI, ANTHROPIC), help="one of the two; both without it")
    parser.add_argument("--small", action="store_true", help="fewer helpers, turns and contestants, in a minute")
    parser.add_argument("--check", action="store_true", help="fail on gross regressions, by ratios of this run")
    parser.add_argument("--uvloop", action="store_true", help="every contestant on uvloop")
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, metavar="NAME")
    parser.add_argument("--json", metavar="FILE", help="write all rows")
    asked = parser.parse_args()
    asked.contestants = asked.contestants or (SMALL_CONTESTANTS if asked.small else CONTESTANTS)
    names = asked.scenarios or (SMALL if asked.small else ALL)
    rows = list(measured(names, (asked.wire,) if asked.wire else (OPENAI, ANTHROPIC), asked))
    if asked.json:
        Path(asked.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    found = problems(rows) if asked.check else []
    for problem in found:
        print(f"too much: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
