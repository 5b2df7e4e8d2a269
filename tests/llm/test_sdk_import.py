"""The SDKs of the vendors are imported without the types of their whole API, and work as if they were not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from model_servers import AnthropicServer, OpenAIServer, Reply

ASK = """
import asyncio, json, sys
from pydantic import SecretStr
from explorer.llm.anthropic.messages import AnthropicClient
from explorer.llm.openai.chat import OpenAIClient
from explorer.llm.options import ClientOptions
from explorer.schema.messages import Request, UserText

async def ask(kind, url):
    async with kind(ClientOptions(base_url=url, key=SecretStr("key"))) as client:
        history = (UserText(text="How was May?"),)
        return await client.generate(
            Request(run="r", agent="a", role="r", model="m", system="s", tools=(), history=history, max_output_tokens=9)
        )

vendor, url = sys.argv[1:]
turn = asyncio.run(ask({"openai": OpenAIClient, "anthropic": AnthropicClient}[vendor], url))
print(json.dumps([turn.text, sorted(name for name in sys.modules if name.startswith(vendor + "."))]))
"""
WHOLE = """
import sys
from explorer.llm.sdk_client import Sdk
package, client = sys.argv[1:]
sdk = Sdk.imported(package, client)
exec(f"from {package}.types import *; from {package}.types.shared import *; import {package} as whole")
assert getattr(whole, client) is sdk.connect
assert whole.APIStatusError is sdk.status_error
assert whole.APIConnectionError is sdk.connection_error
assert whole.DefaultAioHttpClient is sdk.over_aiohttp
print(sorted(vars(whole.types)), sorted(vars(whole.types.shared)), [n for n in whole.__all__ if n not in dir(whole)])
print(whole.__version__, hasattr(whole, "no_such_name"), hasattr(whole.types, "no_such_name"))
"""
SET = """
import sys
from explorer.llm.sdk_client import Sdk
package, client = sys.argv[1:]
Sdk.imported(package, client)
exec(f"import {package} as whole")
whole.api_key = "mine"
assert not hasattr(whole, "no_such_name")  # which has run the package's own code
assert callable(getattr(whole, client))
print(whole.api_key)
"""
PLAIN = """
import sys
package, client = sys.argv[1:]
exec(f"from {package}.types import *; from {package}.types.shared import *; import {package} as whole")
print(sorted(vars(whole.types)), sorted(vars(whole.types.shared)), [n for n in whole.__all__ if n not in dir(whole)])
print(whole.__version__, hasattr(whole, "no_such_name"), hasattr(whole.types, "no_such_name"))
"""
CLIENTS = [("openai", "AsyncOpenAI"), ("anthropic", "AsyncAnthropic")]
OURS = {"'__getattr__', ", "'__dir__', "}


def output(code: str, *words: str) -> str:
    """What a Python process of its own prints."""
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {tests!r})\n{code}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("vendor", "most_types"), [("openai", 50), ("anthropic", 1_200)])
def test_a_request_is_answered_without_the_types_of_the_whole_api(vendor: str, most_types: int) -> None:
    """Of 460 and 2,600 modules of types only those that the SDK's client imports itself; and no endpoint's module."""
    kind = {"openai": OpenAIServer, "anthropic": AnthropicServer}[vendor]
    with kind([Reply(text="Dry.")]) as server:
        text, modules = json.loads(output(ASK, vendor, server.url))
    assert text == "Dry."
    assert sum(name.startswith(f"{vendor}.types.") for name in modules) < most_types
    assert not [name for name in modules if name.startswith((f"{vendor}.resources", f"{vendor}.lib.azure"))]


@pytest.mark.slow
@pytest.mark.parametrize(("package", "client"), CLIENTS)
def test_a_program_that_uses_the_sdk_itself_finds_all_of_it(package: str, client: str) -> None:
    """The same names as without explorer, in the package and below, and the same classes as the adapters have."""
    found = output(WHOLE, package, client)
    for name in OURS:
        found = found.replace(name, "")
    assert found == output(PLAIN, package, client)


@pytest.mark.slow
def test_a_private_module_that_is_gone_is_not_needed() -> None:
    """The SDK's own package has every name, too: another version may have it elsewhere."""
    code = (
        "from explorer.llm.sdk_client import sdk_part; import openai\n"
        "print(sdk_part('openai', '_no_such_module', 'AsyncOpenAI') is openai.AsyncOpenAI)\n"
        "print(sdk_part('openai', '_qs', 'AsyncOpenAI') is openai.AsyncOpenAI)"
    )
    assert output(code) == "True\nTrue\n"


@pytest.mark.slow
@pytest.mark.parametrize(("package", "client"), CLIENTS)
def test_what_a_program_sets_in_the_package_stays(package: str, client: str) -> None:
    """A key put into the package before its own code has run is not overwritten by that."""
    assert output(SET, package, client) == "mine\n"
