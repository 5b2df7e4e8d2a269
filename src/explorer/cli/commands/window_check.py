"""The context windows of models: what is known of them, and what is taken where nothing is."""

from explorer.cli.commands.probes import CheckResult
from explorer.llm.models import AUTO, ModelRef, parse_model
from explorer.run.model_facts import known_window, window_of
from explorer.run.settings_parts import model_setup
from explorer.schema.settings import Settings

NAME = "context windows"


def window_words(ref: ModelRef, settings: Settings) -> str:
    """Return how many tokens a model's window has, and whether that is known."""
    window = window_of(ref, settings)
    if window is None:
        return "-"
    if window == settings.context_window:
        return f"{window:,} (as set)"
    return f"{window:,}" if known_window(ref, settings) else f"{window:,} (assumed)"


def check_windows(settings: Settings) -> list[CheckResult]:
    """Report the windows of the models that the settings name; those of a server are not asked for."""
    setup = model_setup(settings)
    named = [
        parse_model(text, setup.known)
        for text in (settings.model, *settings.role_models.values())
        if text not in {"", AUTO}
    ]
    for one in setup.vendors.values():
        if one.is_ready:
            names = [one.model] if one.model else [*one.server.models.values()]
            named += [ModelRef(one.vendor.name, name) for name in names]
    words = {str(ref): window_words(ref, settings) for ref in named if window_of(ref, settings) is not None}
    share = f"shortened at {settings.context_share:.0%}"
    text = ", ".join(f"{name} {window}" for name, window in words.items())
    return [CheckResult(NAME, "ok", f"{text}; {share}")] if words else []
