"""The forum as an MCP server over stdio: seven tools, each with a schema for its arguments and its result.

    python server.py FORUM.db

The database is made, with an invented forum in it, where there is none.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field
from store import Forum, ForumError

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
SETS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""For tools that do the same when they are called again: a run that was cut off may repeat them."""
SAMPLE = Path(__file__).with_name("sample_forum.json")

Value = TypeVar("Value")
Persona = Annotated[str, Field(min_length=1, max_length=40, description="Name of a persona")]
PostId = Annotated[int, Field(ge=1, description="Id of a post")]


class Post(BaseModel):
    """A post of the forum."""

    post_id: int
    thread_id: int
    parent_id: int | None = Field(description="The post that it answers; null for the first of a thread")
    title: str = Field(description="Of the thread")
    author: str
    body: str
    at: str = Field(description="When it was written, ISO 8601")
    score: int = Field(description="Votes for it minus votes against it")


class Note(BaseModel):
    """A short-term note of a persona."""

    topic: str
    note: str
    updated_at: str


class Memory(BaseModel):
    """What a persona is, and what it noted."""

    persona: str
    profile: str = Field(description="Who it is, and how it writes; it never changes")
    notes: list[Note] = Field(description="Its short-term notes, the newest first")


class Reply(BaseModel):
    """A reply that is in the forum."""

    created: bool = Field(description="Whether this call wrote it; false: an earlier call with this key did")
    post: Post


class Vote(BaseModel):
    """A vote that counts."""

    post_id: int
    value: int
    score: int = Field(description="Of the post, with this vote")


class Remembered(BaseModel):
    """A note that was set or removed."""

    topic: str
    notes: int = Field(description="How many short-term notes the persona has now")


class Posts(BaseModel):
    """Posts of the forum."""

    posts: list[Post]


class Policy(BaseModel):
    """The rules that hold for all."""

    rules: dict[str, str]


def forum_server(forum: Forum) -> MCPServer:
    """Return the server over a forum."""
    server = MCPServer("forum", instructions="A small forum. Read the policy before you write.")

    @server.tool(annotations=READS)
    def get_recent_interactions(
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        involving: Annotated[
            str, Field(max_length=40, description="Only posts of this author, and answers to them")
        ] = "",
    ) -> Posts:
        """List the newest posts of all threads, the newest first."""
        return Posts(posts=[Post(**row) for row in forum.recent_posts(limit, involving)])

    @server.tool(annotations=READS)
    def get_thread_context(
        thread_id: Annotated[int, Field(ge=1)], limit: Annotated[int, Field(ge=2, le=200)] = 50
    ) -> Posts:
        """Read a thread from its first post; of a long one, the first post and the newest."""
        return Posts(posts=[Post(**row) for row in _found(lambda: forum.thread(thread_id, limit))])

    @server.tool(annotations=READS)
    def get_persona_memory(persona: Persona) -> Memory:
        """Read who a persona is, and its short-term notes."""
        profile, notes = _found(lambda: forum.persona(persona))
        return Memory(persona=persona, profile=profile, notes=[Note(**note) for note in notes])

    @server.tool(annotations=READS)
    def get_global_policy() -> Policy:
        """Read the rules of the forum, which hold for every persona."""
        return Policy(rules=forum.policy())

    _add_writing_tools(server, forum)
    return server


def _add_writing_tools(server: MCPServer, forum: Forum) -> None:
    @server.tool(annotations=SETS)
    def create_reply(
        persona: Persona,
        parent_id: PostId,
        body: Annotated[str, Field(min_length=1, max_length=10_000)],
        idempotency_key: Annotated[
            str,
            Field(min_length=8, max_length=80, description="New for each reply: a repeated key writes nothing twice"),
        ],
    ) -> Reply:
        """Answer a post in the name of a persona."""
        row, created = _found(lambda: forum.reply(persona, parent_id, body, idempotency_key))
        return Reply(created=created, post=Post(**row))

    @server.tool(annotations=SETS)
    def cast_vote(persona: Persona, post_id: PostId, value: Literal[-1, 0, 1]) -> Vote:
        """Vote for a post (1) or against it (-1), or take a vote back (0). A persona has one vote on a post."""
        return Vote(post_id=post_id, value=value, score=_found(lambda: forum.vote(persona, post_id, value)))

    @server.tool(annotations=SETS)
    def update_short_term_memory(
        persona: Persona,
        topic: Annotated[str, Field(min_length=1, max_length=80, description="A note of the same topic is replaced")],
        note: Annotated[str, Field(max_length=1_000, description="Empty: the note is removed")],
    ) -> Remembered:
        """Set a short-term note of a persona. It keeps the newest 20."""
        return Remembered(topic=topic, notes=_found(lambda: forum.remember(persona, topic, note)))


def _found(look: Callable[[], Value]) -> Value:
    """Return what the forum has; its refusals are for the model."""
    try:
        return look()
    except ForumError as error:
        raise ToolError(str(error)) from error


def main(path: str) -> None:
    """Serve a forum until the input ends."""
    forum = Forum(Path(path))
    forum.create(**json.loads(SAMPLE.read_text(encoding="utf-8")))
    forum_server(forum).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
