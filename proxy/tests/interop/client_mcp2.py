"""A real client: the second generation of the Python SDK, in either era.

    python client_mcp2.py [--mode legacy|auto|REVISION] URL [MESSAGE]

Lists the tools, calls `echo` with MESSAGE and prints one JSON line. `legacy` starts with a
handshake, `auto` asks the server first and falls back to one, REVISION accepts that revision only.
"""

import argparse
import asyncio
import json

from mcp import Client
from mcp.types import Implementation


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="auto")
    parser.add_argument("url")
    parser.add_argument("message", nargs="?", default="hello")
    args = parser.parse_args()

    name = f"pypi-mcp2-{args.mode}"
    async with Client(args.url, mode=args.mode, client_info=Implementation(name=name, version="1.0.0")) as client:
        tools = (await client.list_tools()).tools
        called = await client.call_tool("echo", {"message": args.message})
        negotiated = client.protocol_version
    print(
        json.dumps(
            {
                "client": name,
                "protocol_version": negotiated,
                "tools": len(tools),
                "result": called.content[0].text,
            }
        )
    )


asyncio.run(main())
