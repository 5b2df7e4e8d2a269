"""explorer: a question becomes a run, and a cited report comes out.

Example:
    from explorer import explore

    result = await explore("What is notable on Hacker News today?")
    print(result.report_text)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from loguru import logger

from explorer.schema.version import __version__

if TYPE_CHECKING:
    from explorer.api import Agent, Run, explore, explore_sync, fork, load_settings, open_run, resume
    from explorer.run.hooks import RunHooks, StopSignal
    from explorer.run.run import RunResult
    from explorer.schema.approvals import Approval, ApprovalRequest
    from explorer.schema.errors import (
        ConfigError,
        ExplorerError,
        ModelError,
        ModelFault,
        NoSuchThingError,
        NotFoundError,
        RefusedCallError,
        StorageError,
        ToolError,
    )
    from explorer.schema.events import JournalRecord, Source, Status
    from explorer.schema.limits import Limits
    from explorer.schema.messages import LLMClient as ModelClient
    from explorer.schema.messages import Request, Results, StopKind, ToolCall, Turn, Usage, UserText
    from explorer.schema.plan import Plan, PlanDecision, SubQuestion
    from explorer.schema.settings import Secrets, Services, Settings
    from explorer.schema.tool import Arguments, Effect, SourceDraft, Tool, ToolContext, ToolResult, tool
    from explorer.text.rendering import block, own

# Imported at their first use: the command line answers `--version` and `--help` without the engine.
_PLACES = {
    "explorer.api": (
        "Agent",
        "Run",
        "explore",
        "explore_sync",
        "fork",
        "load_settings",
        "open_run",
        "resume",
    ),
    "explorer.run.hooks": ("RunHooks", "StopSignal"),
    "explorer.run.run": ("RunResult",),
    "explorer.schema.approvals": ("Approval", "ApprovalRequest"),
    "explorer.schema.errors": (
        "ConfigError",
        "ExplorerError",
        "ModelError",
        "ModelFault",
        "NoSuchThingError",
        "NotFoundError",
        "RefusedCallError",
        "StorageError",
        "ToolError",
    ),
    "explorer.schema.events": ("JournalRecord", "Source", "Status"),
    "explorer.schema.limits": ("Limits",),
    "explorer.schema.messages": ("Request", "Results", "StopKind", "ToolCall", "Turn", "Usage", "UserText"),
    "explorer.schema.plan": ("Plan", "PlanDecision", "SubQuestion"),
    "explorer.schema.settings": ("Secrets", "Services", "Settings"),
    "explorer.schema.tool": ("Arguments", "Effect", "SourceDraft", "Tool", "ToolContext", "ToolResult", "tool"),
    "explorer.text.rendering": ("block", "own"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Agent",
    "Approval",
    "ApprovalRequest",
    "Arguments",
    "ConfigError",
    "Effect",
    "ExplorerError",
    "JournalRecord",
    "Limits",
    "ModelClient",
    "ModelError",
    "ModelFault",
    "NoSuchThingError",
    "NotFoundError",
    "Plan",
    "PlanDecision",
    "RefusedCallError",
    "Request",
    "Results",
    "Run",
    "RunHooks",
    "RunResult",
    "Secrets",
    "Services",
    "Settings",
    "Source",
    "SourceDraft",
    "Status",
    "StopKind",
    "StopSignal",
    "StorageError",
    "SubQuestion",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Turn",
    "Usage",
    "UserText",
    "__version__",
    "block",
    "explore",
    "explore_sync",
    "fork",
    "load_settings",
    "open_run",
    "own",
    "resume",
    "tool",
]


def __getattr__(name: str) -> object:
    if name == "ModelClient":
        return import_module("explorer.schema.messages").LLMClient
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


# The library is silent until asked; the command line calls `logger.enable("explorer")`.
logger.disable("explorer")
