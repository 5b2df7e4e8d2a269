"""A stranger's text that has a token for each byte does not take a run over its limits."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from explorer.run.run import RunHooks, start
from explorer.schema.limits import Limits
from explorer.schema.messages import Request, Results, Turn, Usage, UserText
from explorer.schema.settings import Settings
from explorer.testing import says

RARE = "".join(chr(0x3400 + number % 6_000) for number in range(6_000))
"""Characters of which each has three bytes, and three tokens."""


@dataclass
class ByteVendor:
    """A vendor whose tokenizer knows no word: it bills a token for each byte that is no English prose."""

    bills: list[int] = field(default_factory=list[int])

    async def generate(self, request: Request) -> Turn:
        """Read the file that the user gave, and end."""
        tokens = len(request.system) // 5
        for message in request.history:
            texts = [message.text] if isinstance(message, UserText) else []
            texts += [one.content for one in message.results] if isinstance(message, Results) else []
            tokens += sum(len(text) // 5 if text.isascii() else len(text.encode()) for text in texts)
        self.bills.append(tokens + 20)
        usage = Usage(input_tokens=tokens, output_tokens=20)
        call = ("read_file", {"filepath": "inputs/rare.txt"})
        reply = says("", call) if len(self.bills) == 1 else says("That is all.")
        return reply.model_copy(update={"usage": usage})


async def billed(folder: Path, max_tokens: int | None) -> list[int]:
    """What each request of a run was billed."""
    vendor = ByteVendor()
    limits = Limits(max_tokens=max_tokens) if max_tokens is not None else Limits()
    settings = Settings(workspace=folder, shell="off", limits=limits)
    await start("What is in the file?", settings, RunHooks(client=vendor, files={"rare.txt": RARE.encode()}))
    return vendor.bills


@pytest.mark.parametrize("share", [0.55, 0.7, 0.85, 1.0])
async def test_a_text_of_rare_characters_stays_within_the_limit(tmp_path: Path, share: float) -> None:
    """Whatever the limit leaves for the request that has the text, all requests together are within it."""
    first, second, *_ = await billed(tmp_path / "free", None)
    assert second > first + len(RARE)
    limit = 2 * first + int(share * second)
    assert sum(await billed(tmp_path / "limited", limit)) <= limit
