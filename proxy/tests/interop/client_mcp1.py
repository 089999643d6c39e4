"""A real client: the first generation of the Python SDK (revisions up to 2025-11-25).

    python client_mcp1.py [--sse] URL [MESSAGE]

Lists the tools, calls `echo` with MESSAGE and prints one JSON line. --sse takes HTTP+SSE, the
transport of 2024-11-05.
"""

import argparse
import asyncio
import json

from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sse", action="store_true")
    parser.add_argument("url")
    parser.add_argument("message", nargs="?", default="hello")
    args = parser.parse_args()

    name = "pypi-mcp1-sse" if args.sse else "pypi-mcp1"
    connect = sse_client if args.sse else streamable_http_client
    async with connect(args.url) as (read, write, *_):
        async with ClientSession(read, write, client_info=Implementation(name=name, version="1.0.0")) as session:
            handshake = await session.initialize()
            tools = (await session.list_tools()).tools
            called = await session.call_tool("echo", {"message": args.message})
    print(
        json.dumps(
            {
                "client": name,
                "protocol_version": handshake.protocolVersion,
                "tools": len(tools),
                "result": called.content[0].text,
            }
        )
    )


asyncio.run(main())
