"""Asks a server once, with the real adapter, in a process whose memory can be measured; prints what came of it."""

import asyncio
import json
import sys
import time
from pathlib import Path

from explorer.llm.options import Timeouts
from explorer.schema.errors import ModelError
from llm.test_conversations import client_for, request_for

SHORT = Timeouts(first_content_s=2, idle_s=2, total_s=4)


def peak_mb() -> float:
    """The most memory this process ever had, as the kernel counts it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


async def _ask(wire: str, url: str, timeouts: Timeouts) -> tuple[str, str]:
    async with client_for(wire, url, timeouts) as client:
        try:
            turn = await client.generate(request_for(()))
        except ModelError as error:
            return error.fault, error.message
        return "", turn.text[:200]


def main(wire: str, url: str, retry_settings: str) -> None:
    """Ask, and print one line of JSON."""
    began = time.monotonic()
    fault, message = asyncio.run(_ask(wire, url, SHORT if retry_settings == "short" else Timeouts()))
    seconds = time.monotonic() - began
    print(json.dumps({"fault": fault, "message": message, "peak_mb": peak_mb(), "seconds": seconds}))  # noqa: T201 - its answer


if __name__ == "__main__":
    main(*sys.argv[1:])
