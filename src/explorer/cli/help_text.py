"""The first page of help, written by hand: examples first, flags in groups, and ready without importing a parser."""

from collections.abc import Sequence

from explorer import __version__

COMMANDS = (
    "ask",
    "resume",
    "fork",
    "steer",
    "stop",
    "watch",
    "runs",
    "show",
    "diff",
    "report",
    "verify",
    "grep",
    "demo",
    "tools",
    "agents",
    "models",
    "config",
    "doctor",
)
"""Every command, in the order of the help page."""

HELP = """\
explorer - ask a question, get a cited report

Usage:
  explorer [FLAGS] "QUESTION"        explore, and print the report
  explorer COMMAND [FLAGS] [...]     `explorer COMMAND --help` tells more

Examples:
  explorer "What was notable on Hacker News today?"
  explorer --max-cost 0.50 --max-time 10m "How do embedded databases differ?"
  explorer --file notes.md "What do these notes leave out?"
  explorer -c "Go deeper into the second point"
  explorer --output-format json "..." | jq -r .report
  explorer demo                      no key, no network: a bundled sample day

Commands:
  ask QUESTION             the same as without a command, whatever the words are
  resume [RUN] [MESSAGE]   go on with a run; with MESSAGE, ask a follow-up in it
  fork RUN [MESSAGE]       another run out of the beginning of one (`--at N`)
  steer RUN MESSAGE        say something to a running run
  stop RUN                 have a running run write up and stop (`--now`: end)
  watch [RUN]              follow a running run, or replay an ended one
  runs                     list runs, newest last
  runs rm, runs gc         remove runs: those named, or the old ones
  runs export, import      a run as one file
  show RUN                 one run: agents, files, sources, cost, timeline
  diff RUN_A RUN_B         what is new, gone, changed (exit code 1: something)
  report [RUN]             print a run's report
  report list, show NAME   the library of reports, which agents keep over runs
  verify [RUN]             look quotes and figures up in the sources cited
  grep PATTERN [RUN]       find lines in runs' reports, findings, sources
  demo                     explore the bundled sample day, offline
  tools                    what agents can do, and which roles may
  agents                   the roles: what each is for, its tools and limits
  models                   which model each role would use
  config show              every setting, its value, and where it comes from
  doctor [RUN]             check this machine, keys and services; or one run
  RUN is a run's id, the beginning of one, `latest`, or the path to it.

Models and roles:
  --model NAME             for all roles; `searcher=NAME` for one (repeatable).
                           auto, offline, anthropic:NAME, openai:NAME, or NAME
  --effort VALUE           how much models reason: none, minimal, low, medium,
                           high, xhigh, max; `writer=high` for one role
  --judge MODEL            judges whether the sources carry what is cited
  --roles DIR              your own role files, over the built-in ones
  --no-shell               agents cannot run commands at all
  --unsafe-shell           agents run commands without a sandbox, as you

Limits (`none` lifts one):
  --max-steps N            model turns of all agents together
  --max-cost USD           money of all agents together; by default $5
  --max-tokens N           tokens of all agents; by default 2M without a price
  --max-tool-calls N       tool calls of all agents together
  --max-time TIME          90, 90s, 10m, 2h
  --max-outage TIME        wait so long for a model that is gone; 10m
  --max-agents N           helpers a run may start
  --dry-run                only tell models, limits and the most it can cost

Input and output:
  --file PATH              a file the question is about (repeatable)
  --corpus DIR             a folder of your own to search: text, HTML, PDF
  --since-run RUN          report what is new since an earlier run
  --lang LANGUAGE          of the report; otherwise the question's
  --workspace DIR          the folder that holds the runs
  -o, --output FILE        also write the report to FILE: .md, .markdown, .txt
  --output-format FORMAT   text, json, or stream-json (one record per line)
  -c, --continue           go on with the latest run; the words are a follow-up
  -v, -vv / --verbose      log to stderr; -vv: everything, with tracebacks
  -q, --quiet              nothing on stderr but errors
  -h, --help / --version
  QUESTION is `-` to read it from stdin; what follows `--` is never a flag.
  Text piped in next to a QUESTION is a file it is about: stdin.txt.

Exit codes:
  0 report complete   3 partial, nothing found          6 provider/sources down
  1 failed            4 credentials missing/refused     124 out of time
  2 usage or config   5 not found                       130/143 interrupted

stdout carries the result and nothing else. Settings also come from EXPLORER_*
variables, .env and explorer.toml: see `explorer config show`.
"""


def quick_answer(tokens: Sequence[str]) -> str | None:
    """What needs no parser: the first page of help, and the version; None for everything else."""
    flags = list(tokens[: tokens.index("--")] if "--" in tokens else tokens)
    if flags == ["help"]:
        return HELP
    if flags and flags[0] in (*COMMANDS, "help"):
        return None
    if "--help" in flags or "-h" in flags:
        return HELP
    if flags in (["--version"], ["version"]):
        return f"explorer {__version__}\n"
    return None
