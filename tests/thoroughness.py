"""How many examples a property is tried with: a fifth of them every day, all of them where CI checks."""

from hypothesis import settings

EVERYDAY = "everyday"
THOROUGH = "thorough"

settings.register_profile(EVERYDAY, max_examples=20, deadline=None)
settings.register_profile(THOROUGH, max_examples=100, deadline=None)


def examples(most: int) -> int:
    """Return `most` under `--hypothesis-profile=thorough`, which `.ci/check` gives, and a fifth of it otherwise."""
    return max(1, most * settings.get_profile(settings.get_current_profile_name()).max_examples // 100)
