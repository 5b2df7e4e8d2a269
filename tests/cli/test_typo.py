"""A mistyped command is not asked as a question."""

import json
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.cli.app import build_app
from explorer.cli.help_text import COMMANDS
from explorer.cli.typo import SUBCOMMANDS, edit_distance, refuse_mistyped_command
from explorer.schema.errors import ConfigError
from thoroughness import each_slow_but

Explorer = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("runs", "runs", 0),
        ("rnus", "runs", 1),
        ("reume", "resume", 1),
        ("shw", "show", 1),
        ("", "abc", 3),
        ("ab", "ba", 1),
    ],
)
def test_the_distance_counts_a_swap_of_neighbours_as_one(left: str, right: str, distance: int) -> None:
    """Insertions, deletions, replacements and swaps cost one each."""
    assert edit_distance(left, right) == distance


@given(st.text(alphabet="abc", max_size=7), st.text(alphabet="abc", max_size=7))
def test_the_distance_is_symmetric_and_zero_only_for_equals(left: str, right: str) -> None:
    """It behaves as a distance does."""
    assert edit_distance(left, right) == edit_distance(right, left)
    assert (edit_distance(left, right) == 0) == (left == right)


@pytest.mark.parametrize("word", ["rnus", "reume", "resmue", "reprot", "docter", "RUNS", "tool", "agnets", "cofnig"])
def test_a_single_mistyped_word_is_refused(word: str) -> None:
    """The hint names the command that was meant."""
    with pytest.raises(ConfigError) as caught:
        refuse_mistyped_command([word])
    assert "explorer" in caught.value.hint
    assert "explorer ask" in caught.value.hint


def test_the_words_behind_a_command_are_those_that_it_has() -> None:
    """A command that got one more is not forgotten: `flet status` was asked as a question."""
    app = build_app()
    words = {name: tuple(word for word in app[name] if not word.startswith("-")) for name in COMMANDS}
    assert {name: known for name, known in words.items() if known} == {
        name: known for name, known in SUBCOMMANDS.items() if name != "completion"
    }
    for typed in (["flet", "status"], ["queu", "drain"], ["library"], ["evaluate"]):
        with pytest.raises(ConfigError):
            refuse_mistyped_command(typed)
    for question in (["queues", "drain", "slowly"], ["library", "of", "Alexandria"], ["evaluate", "Rust"]):
        refuse_mistyped_command(question)


@pytest.mark.parametrize(
    "words",
    [
        ["lantern"],
        ["ocean"],
        ["what", "runs", "here"],
        ["agent", "frameworks"],
        ["what runs"],
        ["x" * 100_000],
        [""],
        [],
    ],
)
def test_questions_pass(words: list[str]) -> None:
    """More words, other words, and words too long to be a slip are questions."""
    refuse_mistyped_command(words)


def test_a_mistyped_command_before_a_run_is_refused() -> None:
    """`explorer reume latest "go on"` is no question either."""
    with pytest.raises(ConfigError):
        refuse_mistyped_command(["reume", "latest", "go on"])
    with pytest.raises(ConfigError):
        refuse_mistyped_command(["shw", "20260810-120000-x"])


@pytest.mark.parametrize("command", each_slow_but(5, zip(COMMANDS)))
def test_a_command_behind_a_flag_is_refused_as_a_question(here: Explorer, command: str) -> None:
    """`explorer --lang en runs` would otherwise pay for the question "runs"."""
    done = here("--lang", "en", command)
    assert done.returncode == 2
    assert "must come first" in done.stderr


@pytest.mark.slow
def test_the_process_refuses_with_a_hint_and_exit_code_2(explorer: Explorer) -> None:
    """Nothing is on stdout, and no run is made."""
    done = explorer("rnus")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean `explorer runs`?" in done.stderr
    assert "explorer ask rnus" in done.stderr


def test_the_refusal_has_the_one_json_shape(here: Explorer) -> None:
    """Programs read the same fields as for every other ending."""
    done = here("rnus", "--output-format", "json")
    shown = json.loads(done.stdout)
    assert (shown["status"], shown["exit_code"], shown["error"]["type"]) == ("error", 2, "ConfigError")
