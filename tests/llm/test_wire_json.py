import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.llm.wire_json import (
    as_count,
    as_object,
    encode,
    parse_arguments,
    parse_payload,
    repair_object,
    repair_text,
)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ('{"a": 1', "Expecting ',' delimiter at line 1, column 8 (character 7 of 7)"),
        ('{"path": "a.txt", "content": "half', "Unterminated string"),
        ("[1]", "a JSON array"),
        ('"text"', "a JSON string"),
        ("7", "a number"),
        ("true", "true or false"),
        ("null", "null"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "too large a number"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ('{"a": ' + "[" * 100_000, "not valid JSON"),
        ('{"a": 1} {"b": 2}', "Extra data"),
    ],
    ids=range(12),
)
def test_broken_arguments_are_told(raw: str, problem: str) -> None:
    """Arguments are an object or a problem in words; nothing is repaired, and no input makes the parser fail."""
    value, shown = parse_arguments(raw)
    assert value is None
    assert problem in shown
    assert "JSON object" in shown


@pytest.mark.parametrize(("raw", "value"), [("", {}), (" \n", {}), ("{}", {}), ('{"a": [1.5]}', {"a": [1.5]})])
def test_whole_arguments_are_read(raw: str, value: object) -> None:
    """An object is taken as it is, nothing at all as no arguments."""
    assert parse_arguments(raw) == (value, "")


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
def test_every_text_can_be_sent(text: str) -> None:
    """Whatever a model or a page says, the request is valid UTF-8 and valid JSON."""
    assert json.loads(encode({"text": text}).decode())["text"] == repair_text(text)
    assert repair_object({"text": text}) == {"text": repair_text(text)}


def test_split_pairs_are_joined() -> None:
    """Halves of a pair that arrive apart become the character they are."""
    assert repair_text("a\ud83d" + "\ude00b\ud83d") == "a😀b\ufffd"


@pytest.mark.parametrize(("value", "count"), [(3, 3), (2.7, 2), (-1, 0), (None, 0), ("4", 0), (float("inf"), 0)])
def test_odd_counts(value: object, count: int) -> None:
    """Only finite numbers above nothing are counted."""
    assert as_count(value) == count


@pytest.mark.parametrize(("digits", "count"), [("9" * 400, 10**18), ("-" + "9" * 400, 0), ("9" * 19, 10**18)])
def test_a_count_with_hundreds_of_digits_is_cut(digits: str, count: int) -> None:
    """JSON of a server may have a whole number that no float holds; it ended a run as something unforeseen."""
    usage = as_object(parse_payload(f'{{"usage": {{"output_tokens": {digits}}}}}')["usage"])
    assert as_count(usage["output_tokens"]) == count
