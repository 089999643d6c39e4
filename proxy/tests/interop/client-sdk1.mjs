// A real client: the first generation of the TypeScript SDK (revisions up to 2025-11-25).
//
//   node client-sdk1.mjs [--sse] URL [MESSAGE]
//
// Lists the tools, calls `echo` with MESSAGE and prints one JSON line. --sse takes HTTP+SSE, the
// transport of 2024-11-05.
import { parseArgs } from 'node:util';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { sse: { type: 'boolean', default: false } },
});
const [url, message = 'hello'] = positionals;

const name = flags.sse ? 'npm-sdk1-sse' : 'npm-sdk1';
const transport = new (flags.sse ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url));
// Over HTTP+SSE the transport is told the negotiated revision, but does not give it out.
let negotiated;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  negotiated = version;
  tell?.(version);
};

const client = new Client({ name, version: '1.0.0' });
await client.connect(transport);
const { tools } = await client.listTools();
const { content } = await client.callTool({ name: 'echo', arguments: { message } });
if (!flags.sse) await transport.terminateSession();
await client.close();
console.log(
  JSON.stringify({ client: name, protocol_version: negotiated, tools: tools.length, result: content[0].text }),
);
