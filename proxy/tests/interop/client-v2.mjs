// A real client: the second generation of the TypeScript SDK, in either era.
//
//   node client-v2.mjs [--mode legacy|auto|REVISION] URL [MESSAGE]
//
// Lists the tools, calls `echo` with MESSAGE and prints one JSON line. `legacy` starts with a
// handshake, `auto` asks the server first and falls back to one, REVISION accepts that revision only.
import { parseArgs } from 'node:util';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { mode: { type: 'string', default: 'auto' } },
});
const [url, message = 'hello'] = positionals;

const name = `npm-client2-${flags.mode}`;
const mode = ['legacy', 'auto'].includes(flags.mode) ? flags.mode : { pin: flags.mode };
const transport = new StreamableHTTPClientTransport(new URL(url));
const client = new Client({ name, version: '1.0.0' }, { versionNegotiation: { mode } });
await client.connect(transport);
const { tools } = await client.listTools();
const { content } = await client.callTool({ name: 'echo', arguments: { message } });
const protocol_version = client.getNegotiatedProtocolVersion();
if (client.getProtocolEra() === 'legacy') await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ client: name, protocol_version, tools: tools.length, result: content[0].text }));
