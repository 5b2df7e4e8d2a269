"""A tool that brings evidence: what it stores can be cited, and `explorer verify` looks it up."""

from explorer.schema.tool import SourceDraft, ToolContext, tool

BEDS = {1: "beans, in flower", 2: "chard, ready to cut"}


@tool(is_lookup=True, activity="looking at bed {number}")
async def look_at_bed(number: int, context: ToolContext) -> str:
    """Look at one bed of the garden, by its number."""
    seen = f"Bed {number}: {BEDS.get(number, 'bare earth')}."
    draft = SourceDraft(url=f"garden:bed/{number}", title=f"Bed {number}", kind="record", via="garden", text=seen)
    (source,) = await context.store([draft])
    return f"[{source.id}] {seen}"
