"""A preset: a whole explorer as a configuration, as a run that uses it records it."""

from pydantic import Field

from explorer.schema.messages import Frozen

PRESET_NAME = r"^[a-z][a-z0-9_-]{0,39}$"


class Preset(Frozen):
    """The roles of a preset, as its files were when the run started; its settings are among those of the run."""

    name: str = Field(pattern=PRESET_NAME)
    description: str
    place: str
    """The folder that it was read from."""
    question: str = ""
    """The question that is asked where the user gives none; empty: the user has to ask."""
    team: tuple[str, ...] = ()
    """The names of the roles that the run has; empty: all built-in ones and those of the preset."""
    needs: dict[str, str] = Field(default={})
    """The tools without which it cannot work, each with the command that provides the tool."""
    needed_skills: tuple[str, ...] = Field(default=(), exclude_if=lambda skills: not skills)
    """The skills that its prompts name."""
    roles: dict[str, str] = Field(default={})
    """The texts of its role files, by file name."""

    skills: str = Field(default="", exclude_if=lambda skills: not skills)
    """The SHA-256 of all skills in its folder `skills`; empty: it has none."""

    @property
    def has_team(self) -> bool:
        """Whether it says what the agents are."""
        return bool(self.team or self.roles)
