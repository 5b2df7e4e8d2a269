"""Rules of Anthropic's Messages API."""

from vendor_rules.rule import Asked, Refusal, Rule, RuleSet

SAMPLING = ("temperature", "top_p", "top_k")


def _valid() -> Asked:
    return Asked(
        {
            "model": "claude-opus-5-5",
            "max_tokens": 1024,
            "stream": True,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "What is new?"}]}],
        },
        {"x-api-key": "test", "anthropic-version": "2023-06-01", "content-type": "application/json"},
    )


def _sampling(asked: Asked) -> Refusal | None:
    given = next((name for name in SAMPLING if name in asked.body), None)
    return Refusal(f"`{given}` is not supported for this model.") if given else None


def _add_temperature(asked: Asked) -> None:
    asked.body["temperature"] = 0.2


RULES = RuleSet(
    "Anthropic Messages",
    (
        Rule(
            id="A6",
            says="current models refuse temperature, top_p and top_k",
            source="anthropic SDK 2.x, types of message_create_params",
            check=_sampling,
            violate=_add_temperature,
        ),
    ),
    _valid,
)
