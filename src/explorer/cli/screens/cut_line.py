"""What people are told, once for each model, when its server reads only part of what it is sent."""

from explorer.cli.screens.number_format import tokens
from explorer.cli.screens.run_view import RunView
from explorer.schema.events import TurnTaken

RAISE_IT = "OLLAMA_CONTEXT_LENGTH=64000 ollama serve"
"""64,000 tokens are what Ollama's own pages advise for agents."""


def cut_line(event: TurnTaken, view: RunView) -> str:
    """Return the line for a turn that answers only part of its request; empty for others, and for the model's next.

    Args:
        event: A turn.
        view: The run just before it.
    """
    turn = event.turn
    if not turn.cut_from_tokens or turn.model in view.cut:
        return ""
    read, sent = tokens(turn.usage.input_tokens), tokens(turn.cut_from_tokens)
    return (
        f"{turn.model} was given only {read} of about {sent} tokens: its server cuts long prompts without a word. "
        f"Raise its context length, for Ollama: {RAISE_IT}"
    )
