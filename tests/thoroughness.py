"""How much is tried of what has many cases: a fifth of them every day, all of them where CI checks."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

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
