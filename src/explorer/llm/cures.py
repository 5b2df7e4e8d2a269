"""What vendors and local servers refuse for reasons of their own, and the command or the setting that fixes each."""

import re
from dataclasses import dataclass

from explorer.schema.errors import ModelFault


@dataclass(frozen=True, slots=True)
class Cure:
    """A refusal that is known by its words."""

    says: str
    """A pattern of what the server says."""
    hint: str
    fault: ModelFault = ModelFault.REJECTED
    """What it is, whatever its status: some are sent as 500, and asking again would not help."""


CURES = (
    Cure("--jinja", "start the server with its chat template: llama-server --jinja -m MODEL.gguf"),
    Cure(
        "enable-auto-tool-choice",
        "start vLLM with tools: vllm serve MODEL --enable-auto-tool-choice --tool-call-parser PARSER (hermes for Qwen)",
    ),
    Cure("does not support tools", "take a model that can call tools; `ollama show MODEL` lists what one can do"),
    Cure("failed to parse grammar", "update llama.cpp or LM Studio: this version cannot read the tools' schemas"),
    Cure(r"try pulling it|pull(ing)? the model", "get the model: ollama pull MODEL", ModelFault.UNKNOWN_MODEL),
    Cure(
        "no models? (is )?loaded|model unloaded",
        "load a model: lms load MODEL, or llama-server -m MODEL.gguf",
        ModelFault.UNKNOWN_MODEL,
    ),
    Cure(
        r"organi[sz]ation must be verified|verify organi[sz]ation",
        "verify the organisation at platform.openai.com/settings/organization/general, or take another model",
    ),
    Cure(
        "unsupported_country|country, region|not available in your (country|region)|location is not supported",
        "the provider does not serve this country; take another provider: explorer models",
    ),
    Cure(
        "not have access to (the )?model|model.{0,40}not (found|available)|no endpoints found",
        "take a model that this key may use: explorer models",
        ModelFault.UNKNOWN_MODEL,
    ),
    Cure(
        "insufficient_quota|exceeded your current quota|credit balance is too low|insufficient (credits|balance)|"
        "requires more credits|payment required",
        "add credit to the provider's account, or take another provider: explorer models",
    ),
)
"""First match wins; each is said so by the vendor's own server (see `tests/vendor_rules`)."""


def cure_of(refusal_text: str, status: int) -> Cure | None:
    """Return what fixes a refusal; None where its words are not known."""
    if status == 429 and not re.search(r"quota|credit|balance", refusal_text, re.IGNORECASE):  # noqa: PLR2004
        return None
    return next((cure for cure in CURES if re.search(cure.says, refusal_text, re.IGNORECASE)), None)


def foreign_key_hint(key: str, key_setting: str) -> str:
    """Say whose key was given where it is another provider's; empty where it cannot be told."""
    for prefix, owner, setting in _PREFIXES:
        if key.startswith(prefix):
            return f"{key_setting} holds a key of {owner}: put it into {setting}" if setting != key_setting else ""
    return ""


_PREFIXES = (
    ("sk-ant-", "Anthropic", "ANTHROPIC_API_KEY"),
    ("tvly-", "Tavily", "TAVILY_API_KEY"),
)
