import pytest

from explorer.llm.openai.compatible import WrittenCall, find_written_calls

KNOWN = ("read_file", "finish")
READ_A = WrittenCall("read_file", {"filepath": "a.md"})
READ_B = WrittenCall("read_file", {"filepath": "b.md"})
PLAIN = '{"name": "read_file", "arguments": {"filepath": "a.md"}}'
OTHER = PLAIN.replace("a.md", "b.md")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"\n  {PLAIN}\n",
        f"```json\n{PLAIN}\n```",
        f"```\n{PLAIN}\n```",
        f"<tool_call>{PLAIN}</tool_call>",
        f"<tool_call>\n{PLAIN}\n</tool_call>\n",
        f"<think>I should read {{it}}.</think>\n\n{PLAIN}",
        f"[{PLAIN}]",
        '{"name": "read_file", "parameters": {"filepath": "a.md"}}',
        '{"name": "read_file", "arguments": "{\\"filepath\\": \\"a.md\\"}"}',
        '{"type": "function", "function": {"name": "read_file", "arguments": {"filepath": "a.md"}}}',
    ],
)
def test_one_written_call(text: str) -> None:
    """A reply that is one call of a known tool, in any of the usual spellings, is that call."""
    assert find_written_calls(text, KNOWN) == (READ_A,)


@pytest.mark.parametrize(
    "text",
    [
        f"{PLAIN}\n{OTHER}",
        f"[{PLAIN}, {OTHER}]",
        f"<tool_call>{PLAIN}</tool_call>\n<tool_call>{OTHER}</tool_call>",
        f"<tools>{PLAIN}</tools>\n<tools>{OTHER}</tools>",
        f"{PLAIN}\n{OTHER}\n{PLAIN}\n{PLAIN}",
    ],
)
def test_several_written_calls(text: str) -> None:
    """Calls one after another are all taken, in order, and one that is repeated is taken once."""
    assert find_written_calls(text, KNOWN) == (READ_A, READ_B)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Nothing to do.",
        f"I would call {PLAIN}",
        f"{PLAIN}\nand then I would stop.",
        f"```json\n{PLAIN}\n```\nThis reads the file.",
        f"```json\n{PLAIN}\n```\n```json\n{PLAIN}\n```",
        PLAIN.replace("read_file", "unknown_tool"),
        PLAIN.replace('{"filepath": "a.md"}', '["a.md"]'),
        PLAIN.replace('{"filepath": "a.md"}', '"{broken"'),
        PLAIN[:-3],
        '{"name": "read_file"}',
        '{"name": "read_file", "arguments": {}, "score": 12}',
        '{"title": "A finding", "score": 3}',
        "[1, 2, 3]",
        "[]",
        "{}",
        f"[{PLAIN}, 3]",
        f"<tool_call>{PLAIN}",
        f"<tool_call>{PLAIN}</tools>",
        "[" * 100_000,
    ],
)
def test_what_may_be_meant_otherwise_stays_text(text: str) -> None:
    """Prose around a call, unknown tools, other JSON and broken JSON are not run."""
    assert find_written_calls(text, KNOWN) == ()
