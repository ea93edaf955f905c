"""Holds requests to what the providers' own SDKs take: their parameter types are generated from the published schemas.

Reads lines of {"name", "dialect", "body"} and prints a line for each mistake: a key that the schema does not have, one that is
missing, a value of another type. Exits with 1 when there was one.
"""

import json
import sys
from collections.abc import Iterable
from itertools import count

from anthropic.types import message_create_params as messages
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

# The streaming form of each, since every request asks for a stream.
FORMS = {
    "openai": chat.CompletionCreateParamsStreaming,
    "openai-responses": responses.ResponseCreateParamsStreaming,
    "anthropic": messages.MessageCreateParamsStreaming,
}


def forbid_strangers() -> None:
    """Has each of the SDKs' parameter types refuse keys that it does not have."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("openai.types", "anthropic.types")):
            for value in vars(module).values():
                if is_typeddict(value):
                    value.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def said(problem: ValidationError, place: str) -> list[str]:
    return [f"{place}{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in problem.errors()]


def walk(value: object, place: str = "") -> list[str]:
    """What is wrong inside lists, which are looked at only as they are read."""
    if isinstance(value, dict):
        return [m for key, inner in value.items() for m in walk(inner, f"{place}{key}.")]
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return []
    found: list[str] = []
    items = iter(value)
    for at in count():
        try:
            found += walk(next(items), f"{place}{at}.")
        except StopIteration:
            return found
        except ValidationError as problem:
            return found + said(problem, f"{place}{at}.")
    return found


def mistakes(adapter: TypeAdapter, body: object) -> list[str]:
    try:
        return walk(adapter.validate_python(body))
    except ValidationError as problem:
        return said(problem, "")


def main() -> int:
    forbid_strangers()
    adapters = {name: TypeAdapter(form) for name, form in FORMS.items()}
    # A check that finds nothing wrong with anything would pass everything: strangers at the top and inside a list.
    for name, adapter in adapters.items():
        turns = [{"role": "user", "content": "x", "no_such_key": 1}]
        wrong = {"model": "m", "stream": True, "max_tokens": 1}
        top = mistakes(adapter, {**wrong, "no_such_key": 1})
        inner = mistakes(adapter, {**wrong, "input" if "responses" in name else "messages": turns})
        if not all(any("no_such_key" in mistake for mistake in each) for each in (top, inner)):
            print(f"{name}: a key that the schema does not have is not noticed: {top} {inner}")
            return 1
    found = 0
    for line in sys.stdin:
        request = json.loads(line)
        for mistake in mistakes(adapters[request["dialect"]], request["body"]):
            print(f"{request['dialect']} {request['name']}: {mistake}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
