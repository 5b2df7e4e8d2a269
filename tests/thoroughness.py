"""How much is tried of what has many cases: a fifth of them every day, all of them where CI checks."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Case = TypeVar("Case")

EVERYDAY = "everyday"
THOROUGH = "thorough"

settings.register_profile(EVERYDAY, max_examples=20, deadline=None)
settings.register_profile(THOROUGH, max_examples=100, deadline=None)


def examples(most: int) -> int:
    """Return `most` under `--hypothesis-profile=thorough`, which `.ci/check` gives, and a fifth of it otherwise."""
    return max(1, most * settings.get_profile(settings.get_current_profile_name()).max_examples // 100)


def some(cases: Iterable[Case]) -> Iterable[Case]:
    """Return all cases under `--hypothesis-profile=thorough`, and every fifth otherwise, the first among them."""
    return islice(cases, 0, None, 100 // examples(100))


def each_slow_but(every: int, cases: Iterable[Sequence[Any]]) -> list[Any]:
    """Return parameters for `parametrize`: every so many-th case is tried every day, the others by the slow tests.

    Args:
        every: 2 and more; with 3, cases 1, 4, 7, ... are tried every day.
        cases: The values of each case.
    """
    return [
        pytest.param(*case, marks=[] if number % every == 0 else pytest.mark.slow) for number, case in enumerate(cases)
    ]
