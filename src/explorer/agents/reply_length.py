"""How long a reply may be where the limits have no room for the wished length: shorter, as long as it is of use."""

from collections.abc import Iterator

MIN_OUTPUT_TOKENS = 1_024
"""A reply with less room than this is not worth asking for."""
SHORT_REPLY_MARKS = (1_500, 3_000, 6_000)
"""Below these, who writes a report has to know how short its replies are: one that is cut is paid for and lost."""
LEAST_EXPLORING_TOKENS = SHORT_REPLY_MARKS[0]
"""With less for a reply of the orchestrator, exploring is over: what is held back for the report has more room."""
LEAST_WRITING_TOKENS = SHORT_REPLY_MARKS[-1]
"""The same for who writes the report."""


def reply_lengths(wished: int) -> Iterator[int]:
    """Yield the lengths to try, longest first: the wished one, then by quarters and thirds down to the shortest."""
    length = wished
    while length > MIN_OUTPUT_TOKENS:
        yield length
        if length * 3 // 4 > MIN_OUTPUT_TOKENS:
            yield length * 3 // 4
        length //= 2
    yield min(wished, MIN_OUTPUT_TOKENS)
