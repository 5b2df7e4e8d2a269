"""What tests of your own tools, roles and programs need: a model that says what a script says.

from explorer.testing import ScriptedClient, says

client = ScriptedClient({"orchestrator": [says("The answer is 42.")]})
"""

from explorer.llm.scripted import Script, ScriptedClient, ScriptError, says

__all__ = ["Script", "ScriptError", "ScriptedClient", "says"]
