"""All settings, as the fields of `Settings` declare them: what everything about settings is made from."""

import re

from explorer.schema.setting import PerRole, Setting, declared_settings
from explorer.schema.settings import Settings

ROLE = re.compile(r"[a-z][a-z0-9_-]*")
ROLE_MODELS = next(item for item in Settings.model_fields["role_models"].metadata if isinstance(item, PerRole))
MODEL_VARIABLE = ROLE_MODELS.prefix
"""Followed by a role's name in capitals: the model of that role."""
MODELS_KEY = ROLE_MODELS.table
"""The table of models by role in a configuration file."""

TABLE: tuple[Setting, ...] = declared_settings(Settings)
