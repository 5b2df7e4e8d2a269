"""How much a model is to reason: the words that each vendor knows."""

from collections.abc import Mapping, Sequence
from typing import get_args

from explorer.llm.models import ANTHROPIC, OPENAI, ModelRef
from explorer.schema.errors import ConfigError
from explorer.schema.model_options import Effort

EFFORTS: Mapping[str, tuple[str, ...]] = {
    ANTHROPIC: ("low", "medium", "high", "xhigh", "max"),
    OPENAI: get_args(Effort),
}
"""By vendor; a test compares them with the SDKs. Which of them a model knows, its vendor says when it is asked."""


def check_effort(model: ModelRef, effort: str, of_vendor: Sequence[str] = ()) -> None:
    """Refuse a word that a model's vendor does not know, before anything is asked. The stand-in takes any: it has none.

    Args:
        model: Which model is to reason.
        effort: How much.
        of_vendor: The words of a vendor that a package brings.

    Raises:
        ConfigError: Names the words there are.
    """
    known = EFFORTS.get(model.vendor) or of_vendor
    if effort and known and effort not in known:
        message = f"{model} does not take the effort {effort!r}"
        raise ConfigError(message, hint=f"one of {', '.join(known)}: --effort VALUE, or --effort ROLE=VALUE")
