"""A vendor of models with a key of its own: `garden:NAME`. This one follows a script; a real one asks a server."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

from pydantic import SecretStr

from explorer.llm.scripted import Script, ScriptedClient, says
from explorer.llm.vendors import ModelAccess, Vendor
from explorer.schema.messages import LLMClient, Turn
from explorer.schema.model_options import Price
from explorer.schema.setting import KEY, ExtensionSettings, Group, Setting

REPORT = """\
# The garden

Bed 2 can be harvested: its chard is “ready to cut” [S3]. The almanac has it that chard is cut when its leaves are
20 cm long [S2].
"""
SCRIPT: dict[str, Sequence[Turn] | Script] = {
    "orchestrator": (
        says("", ("call_agent", {"agent_type": "gardener", "task_description": "What can be cut?"})),
        says("", ("write_file", {"filepath": "report.md", "content": REPORT})),
        says("", ("finish_exploration", {"summary": "Bed 2 can be harvested."})),
    ),
    "gardener": (
        says("", ("web_search", {"query": "chard"})),
        says("", ("read_webpage", {"url": "https://garden.example/almanac/chard"})),
        says("", ("look_at_bed", {"number": 2})),
        says("", ("write_file", {"filepath": "beds.md", "content": "# Beds\n\n2: chard, ready to cut [S3]\n"})),
        says("Bed 2 is ready."),
    ),
}


class GardenSettings(ExtensionSettings):
    """What the vendor needs."""

    key: Annotated[SecretStr, Setting("GARDEN_KEY", KEY, "Key for the garden's models", Group.MODELS)] = SecretStr("")


@asynccontextmanager
async def _open(_settings: GardenSettings, _access: ModelAccess) -> AsyncGenerator[LLMClient]:
    yield ScriptedClient(SCRIPT)


VENDOR = Vendor(
    "garden",
    GardenSettings,
    _open,
    needs="key",
    price=lambda _model: Price(input_usd=0.5, output_usd=1.5),
    window_tokens=lambda _model: 32_000,
    efforts=("low", "high"),
)
