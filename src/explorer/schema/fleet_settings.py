"""The settings of a fleet's workers; `Settings` has them as its own. They are in no journal, but a machine's."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from explorer.schema.setting import TEXT, Flag, Group, Setting, one_of

FLEET_STORES = ("local", "database")
"""The allowed values of `fleet_store`."""


class FleetSettings(BaseModel):
    """Where the runs of a fleet are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fleet_store: Annotated[
        str,
        Setting(
            "EXPLORER_FLEET_STORE",
            one_of(*FLEET_STORES),
            "Where a fleet has its runs: `local` (the workspace) or `database`, so that any machine can continue them",
            Group.FILES,
            flags=(Flag("--store", "STORE"),),
            default="what the fleet's database remembers; `local` in a new one",
        ),
    ] = Field(default="", exclude=True)
    fleet_objects: Annotated[
        str,
        Setting(
            "EXPLORER_FLEET_OBJECTS",
            TEXT,
            "Object store for files over 32 MB of a fleet's runs: `s3://BUCKET/PREFIX`, or `file:///FOLDER`",
            Group.FILES,
            details="Keys for it are read from its own variables, like `AWS_ACCESS_KEY_ID`",
            default="none: they are in the database, in pieces",
        ),
    ] = Field(default="", exclude=True)
