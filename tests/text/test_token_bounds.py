"""The most tokens of a text, held against the counts of three published tokenizers."""

import pytest

from explorer.text.token_bounds import most_tokens

COUNTED = (
    ("The ropes cost 120 euros in March 2026, said the harbour master of the town on the hill.", 23),
    ("9c9c045d3154c2f2b05886cc1b93f0f7a1b2c3d4e5f60718293a4b5c6d7e8f90", 49),
    ("aGVsbG8gd29ybGQhIFRoaXMgaXMgYSBwaWN0dXJlIGluIGJhc2U2NCwgbm90IHByb3NlLg==QZxJkVwTzK9Xq", 62),
    ("ኢትዮጵያ በአፍሪካ ቀንድ የምትገኝ ሀገር ናት።", 77),
    ("བོད་ཡིག་ནི་བོད་ཀྱི་སྐད་ཡིག་ཡིན།", 93),
    ("ประเทศไทยเป็นประเทศในเอเชียตะวันออกเฉียงใต้", 82),
    ("电池的成本在过去五年里下降了百分之四十。", 23),
    ("\u3400\u3a12\u4123\u3f33\u4555\u3b66\u4777\u3888", 24),
    ("\U00013000\U00013101\U00013202\U00013303\U000130a4", 20),
    ("🌍🌋🎆🏔🐉🍄🏺🎲", 24),
    ("!#%&*+;:<>?@[]^_{|}~$!%#*&;+<:?>@]", 29),
    ('{"id":7,"url":"https://a.example/p/0af31","ok":true}', 23),
    ("Цена канатов выросла на двенадцать процентов в марте.", 26),
)
"""Texts, and the highest count of o200k_base, cl100k_base and the tokenizer that Anthropic published."""


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_no_tokenizer_counts_more(text: str, tokens: int) -> None:
    """Half of the bytes, which is enough for prose of Latin letters, is too little for half of these."""
    assert tokens <= most_tokens(text) <= len(text.encode())


def test_a_half_of_the_bytes_is_no_bound() -> None:
    """What was reserved before: the texts have teeth."""
    assert sum(len(text.encode()) // 2 < tokens for text, tokens in COUNTED) >= 7


def test_prose_of_latin_letters_is_hardly_reserved_higher() -> None:
    """Or a small limit would have room for less of the work."""
    text = COUNTED[0][0]
    assert most_tokens(text) < 0.6 * len(text)


@pytest.mark.parametrize("text", ["", "\ud800", "a"])
def test_any_text_has_a_bound(text: str) -> None:
    """Half a surrogate pair, which nothing can encode, too."""
    assert most_tokens(text) >= len(text)
