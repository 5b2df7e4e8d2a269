"""`doctor --probe`: each quirk of a small model is measured over real HTTP, kept, shown, and decides the mode."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command import explorer_here
from explorer.llm.profiles import stored_profiles
from lean_script import lean_model
from model_servers import Asked, OpenAIServer, Reply
from team_script import NOTES, last_json

Script = Callable[[Asked], Reply]
FORM = Reply(text='{"colour": "red"}')


def capable(asked: Asked) -> Reply:
    """A model that does what it is asked: calls, in parallel, forms, and a word where a word is wanted."""
    last = asked.said[-1]
    if "response_format" in asked.body:
        return FORM
    if not asked.tools:
        return Reply(text="yes", usage={"input": len(last) // 4, "output": 2})
    return Reply(calls=[("look_up", {"word": word}) for word in ("tide", "lantern") if word in last])


def with_calls(write: Callable[[list[dict[str, Any]]], Reply]) -> Script:
    """The same, with its calls written in another way."""

    def script(asked: Asked) -> Reply:
        reply = capable(asked)
        calls = [{"name": name, "arguments": arguments} for name, arguments in reply.calls]
        return write(calls) if calls else reply

    return script


def called(call: dict[str, Any]) -> Reply:
    """One call, made as it should be."""
    return Reply(calls=[(call["name"], call["arguments"])])


def joined(before: str, after: str, *, most: int = 9) -> Script:
    """The same, with its calls as text between marks."""
    return with_calls(
        lambda calls: Reply(text="\n".join(f"{before}{json.dumps(call)}{after}" for call in calls[:most]))
    )


def thinking(asked: Asked) -> Reply:
    """A model whose server leaves its thinking in the text."""
    reply = capable(asked)
    return reply if reply.calls or reply is FORM else Reply(text=f"<think>Easy.</think>{reply.text}", usage=reply.usage)


def endless(asked: Asked) -> Reply:
    """A model that does not stop."""
    reply = capable(asked)
    return reply if reply.calls or reply is FORM else Reply(text="yes " * 300, stop="max_tokens")


def repeating(asked: Asked) -> Reply:
    """A model that makes one call again and again."""
    return with_calls(lambda calls: Reply(calls=[("look_up", calls[0]["arguments"])] * 6))(asked)


def formless(asked: Asked) -> Reply:
    """A server that takes no notice of forms."""
    return Reply(text="The sea is blue.") if "response_format" in asked.body else capable(asked)


def cutting(asked: Asked) -> Reply:
    """A server that keeps 2,048 tokens of a long prompt, without a word."""
    reply = capable(asked)
    counted = min(len(str(asked.said)) // 4, 2_048)
    return Reply(text=reply.text, calls=reply.calls, usage={"input": counted, "output": 2})


@contextmanager
def probed(script: Script, folder: Path) -> Generator[tuple[OpenAIServer, str]]:
    """Probe a server; yield it with what the command printed."""
    with OpenAIServer(script) as server:
        done = explorer_here("doctor", "--probe", cwd=folder, settings={"OPENAI_BASE_URL": server.url})
        assert done.returncode == 0, done.stdout + done.stderr
        yield server, done.stdout


QUIRKS = {
    "capable": (capable, "2 of 2 tool calls, parallel calls, replies in a form", "the whole team"),
    "single": (with_calls(lambda calls: called(calls[0])), "2 of 2 tool calls, one call at a time", "lean mode"),
    "fence": (joined("```json\n", "\n```", most=1), "(text that is read as calls), one call at a time", "lean mode"),
    "tool_call": (joined("<tool_call>\n", "\n</tool_call>", most=1), "(text that is read as calls)", "lean mode"),
    "tools": (joined("<tools>\n", "\n</tools>"), "2 of 2 tool calls (text that is read as calls)", "the whole team"),
    "prose": (joined("I call ", " now."), "0 of 2 tool calls (prose)", "lean mode"),
    "unread fence": (joined("Well:\n```json\n", "\n```"), "0 of 2 tool calls (```)", "lean mode"),
    "thinking": (thinking, "thinking in its replies", "the whole team"),
    "endless": (endless, "replies that run away", "lean mode"),
    "repeating": (repeating, "replies that run away", "lean mode"),
    "formless": (formless, "no replies in a form", "the whole team"),
    "cutting": (cutting, "window 4,096 tokens", "lean mode"),
}


@pytest.mark.slow
@pytest.mark.parametrize("quirk", QUIRKS)
def test_each_quirk_is_measured_and_decides_the_mode(quirk: str, tmp_path: Path) -> None:
    """The line says what was seen, and which mode follows from it."""
    script, seen, mode = QUIRKS[quirk]
    with probed(script, tmp_path) as (_server, line):
        assert seen in line
        assert mode in line


@pytest.mark.slow
def test_a_profile_is_kept_shown_used_and_forgotten(tmp_path: Path) -> None:
    """The next run is in lean mode without a flag; another address has no profile; `--forget` removes it."""
    (tmp_path / "notes.md").write_text(NOTES)
    state = tmp_path / ".local" / "state" / "explorer"
    weak = joined("I call ", " now.")
    reports = lean_model("S1: Solar output rose by 12 % in May, says the plant's log.", answer="It rose by 12 %.")

    def script(asked: Asked) -> Reply:
        return weak(asked) if "careful assistant" in asked.system else reports(asked)

    with probed(script, tmp_path) as (server, line):
        settings = {"OPENAI_BASE_URL": server.url}
        (profile,) = stored_profiles(state)
        assert (profile.url, profile.model, profile.calls) == (server.url, "model-a", 0)
        assert oct((next((state / "models").iterdir())).stat().st_mode & 0o777) == "0o600"
        shown = explorer_here("models", cwd=tmp_path, settings=settings).stdout
        assert "lean mode: by the profile of openai:model-a: 0 of 2 tool calls" in shown
        words = ("What rose in May?", "--file", "notes.md", "--output-format", "json")
        done = explorer_here(*words, cwd=tmp_path, settings=settings)
        assert last_json(done.stdout)["status"] == "complete", done.stderr
        assert "by the profile of openai:model-a" in done.stderr
        forgotten = explorer_here("doctor", "--forget", cwd=tmp_path, settings=settings)
        assert "1 profile removed" in forgotten.stdout
        assert stored_profiles(state) == []
        assert "lean" not in explorer_here("models", cwd=tmp_path, settings=settings).stdout
        assert server.url in line


@pytest.mark.slow
def test_a_damaged_profile_is_as_good_as_none(tmp_path: Path) -> None:
    """It is passed over, and the next probe replaces it."""
    with probed(capable, tmp_path) as (server, _line):
        state = tmp_path / ".local" / "state" / "explorer"
        path = next((state / "models").iterdir())
        path.write_text('{"url": 1')
        settings = {"OPENAI_BASE_URL": server.url}
        assert stored_profiles(state) == []
        assert explorer_here("models", cwd=tmp_path, settings=settings).returncode == 0
        explorer_here("doctor", "--probe", cwd=tmp_path, settings=settings)
        assert len(stored_profiles(state)) == 1


@pytest.mark.slow
def test_a_server_that_is_away_is_said(tmp_path: Path) -> None:
    """The probe fails with the reason, and nothing is kept."""
    settings = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "EXPLORER_MODEL": "openai:x"}
    done = explorer_here("doctor", "--probe", cwd=tmp_path, settings=settings)
    assert done.returncode == 1
    assert "nothing listens at 127.0.0.1, port 9" in done.stdout
