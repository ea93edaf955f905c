"""Drives an agentd daemon with the official A2A client: card, send, stream, list, cancel, and the errors of each.

Usage: a2a_client.py URL TOKEN. Prints one JSON object with what came of each step.
"""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict


def message(text):
    return a2a.Message(message_id=str(uuid.uuid4()), role=a2a.ROLE_USER, parts=[a2a.Part(text=text)])


async def told(client, request):
    """Everything that one message brings, as JSON."""
    return [MessageToDict(event) async for event in client.send_message(request)]


async def failed(call):
    try:
        await call
    except Exception as error:  # What kind of error it is, is what is looked at.
        return type(error).__name__
    return "no error"


async def main(url, token):
    seen = {}
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        seen["card"] = MessageToDict(card)
        streaming = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        blocking = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        seen["sent"] = await told(blocking, a2a.SendMessageRequest(message=message("say hello")))
        seen["streamed"] = await told(streaming, a2a.SendMessageRequest(message=message("say hello")))
        task = seen["sent"][0]["task"]["id"]
        seen["got"] = MessageToDict(await blocking.get_task(a2a.GetTaskRequest(id=task)))
        # A turn that goes on until it is cancelled.
        at_once = a2a.SendMessageConfiguration(return_immediately=True)
        slow = a2a.SendMessageRequest(message=message("wait"), configuration=at_once)
        slow = (await told(blocking, slow))[0]["task"]["id"]
        follow = asyncio.create_task(
            anext(aiter(streaming.subscribe(a2a.SubscribeToTaskRequest(id=slow))))
        )
        seen["subscribed"] = MessageToDict(await follow)
        seen["cancelled"] = MessageToDict(await blocking.cancel_task(a2a.CancelTaskRequest(id=slow)))
        seen["cancelled_again"] = await failed(blocking.cancel_task(a2a.CancelTaskRequest(id=slow)))
        seen["unknown"] = await failed(blocking.get_task(a2a.GetTaskRequest(id="nobody")))
        seen["listed"] = MessageToDict(await blocking.list_tasks(a2a.ListTasksRequest(page_size=2)))
        # Protobuf knows no integers in data: a command's arguments come as they are meant all the same.
        command = a2a.Message(message_id=str(uuid.uuid4()), role=a2a.ROLE_USER, parts=[a2a.Part()])
        command.parts[0].data.struct_value.update({"agentd": {"op": "logs", "handle": "root", "lines": 3}})
        seen["command"] = await told(blocking, a2a.SendMessageRequest(message=command))
    async with httpx.AsyncClient(timeout=60) as http:
        stranger = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        seen["without_token"] = await failed(told(stranger, a2a.SendMessageRequest(message=message("hello"))))
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
