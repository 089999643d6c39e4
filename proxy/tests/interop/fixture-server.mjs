// A small MCP server with the tools, prompts and resources that the official conformance suite asks
// for, in both eras on one path: sessions and pushed requests for the revisions up to 2025-11-25, and
// 2026-07-28 with one request per exchange.
//
//   node fixture-server.mjs [--port N]
//
// It listens on 127.0.0.1 (a free port unless told otherwise), prints {"port":N} once bound, serves
// http://127.0.0.1:N/mcp and ends on SIGTERM. `setup` installs what it imports.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
  CLIENT_CAPABILITIES_META_KEY,
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  acceptedContent,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  isLegacyRequest,
} from '@modelcontextprotocol/server';

const { values: flags } = parseArgs({ options: { port: { type: 'string', default: '0' } } });

// One red pixel, and a quarter of a millisecond of silence.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==';
const STEP_MS = 50;

const text = (value) => ({ type: 'text', text: value });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri, mimeType, body) => ({ type: 'resource', resource: { uri, mimeType, text: body } });
const says = (...content) => ({ content });
const asks = (...messages) => ({ messages: messages.map((content) => ({ role: 'user', content })) });
const object = (properties = {}, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const string = (description) => ({ type: 'string', description });

const elicit = (message, properties, required) =>
  inputRequired.elicit({ message, requestedSchema: object(properties, required) });
const sample = (prompt, maxTokens = 100) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(prompt) }], maxTokens });

/** State that travels through the client is signed; a changed one is refused before a handler sees it. */
const state = createRequestStateCodec({ key: randomUUID() });

/** The answer a retried request carries for `key`, or undefined when it has none of the wanted kind. */
function answered(ctx, key, kind) {
  const answer = inputResponse(ctx.mcpReq.inputResponses, key);
  return answer.kind === kind ? answer : undefined;
}

/** A tool or prompt that asks for one thing by elicitation and reports what came back. */
function elicitation(key, message, properties, report) {
  return (_args, ctx) => {
    const answer = answered(ctx, key, 'elicit');
    return answer
      ? says(text(report(answer)))
      : inputRequired({ inputRequests: { [key]: elicit(message, properties) } });
  };
}

const outcome = ({ action, content }) => `action=${action}, content=${JSON.stringify(content ?? {})}`;

const choices = (...pairs) => pairs.map(([value, title]) => ({ const: value, title }));

/** name -> [description, input schema, handler]; `change` tells open clients that a list changed. */
const tools = (change) => ({
  test_simple_text: [
    'Answers with one line of text',
    object(),
    () => says(text('This is a simple text response for testing.')),
  ],
  echo: [
    'Answers with what it was told',
    object({ message: string('What to say back') }),
    ({ message }) => says(text(`Echo: ${message}`)),
  ],
  test_image_content: ['Answers with a picture', object(), () => says(image)],
  test_audio_content: [
    'Answers with a sound',
    object(),
    () => says({ type: 'audio', data: WAV, mimeType: 'audio/wav' }),
  ],
  test_embedded_resource: [
    'Answers with a resource',
    object(),
    () => says(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  ],
  test_multiple_content_types: [
    'Answers with text, a picture and a resource',
    object(),
    () =>
      says(
        text('Multiple content types test:'),
        image,
        embedded('test://mixed-content-resource', 'application/json', JSON.stringify({ test: 'data', value: 123 })),
      ),
  ],
  test_error_handling: [
    'Always fails',
    object(),
    () => {
      throw new Error('This tool intentionally returns an error for testing');
    },
  ],
  test_tool_with_logging: [
    'Logs while it works',
    object(),
    async (_args, ctx) => {
      for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        if (line !== 'Tool execution started') await pause(STEP_MS);
        await ctx.mcpReq.log('info', line);
      }
      return says(text('Logged three times'));
    },
  ],
  test_logging_tool: [
    'Logs only for clients that asked for logs',
    object(),
    async (_args, ctx) => {
      await ctx.mcpReq.log('info', 'A log line');
      return says(text('Logged if wanted'));
    },
  ],
  test_tool_with_progress: [
    'Reports progress while it works',
    object(),
    async (_args, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (progress > 0) await pause(STEP_MS);
        if (progressToken === undefined) continue;
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      }
      return says(text('All steps done'));
    },
  ],
  test_reconnection: [
    'Closes its own stream and answers on the one that the client opens next',
    object(),
    async (_args, ctx) => {
      ctx.http?.closeSSE?.();
      await pause(2 * STEP_MS);
      return says(text('Answered after the stream was closed'));
    },
  ],
  test_sampling: [
    "Asks the client's model",
    object({ prompt: string('The prompt for the model') }),
    ({ prompt }, ctx) => {
      const answer = answered(ctx, 'model', 'sampling');
      if (!answer) return inputRequired({ inputRequests: { model: sample(prompt) } });
      return says(text(`LLM response: ${answer.result.content.text ?? ''}`));
    },
  ],
  test_elicitation: [
    "Asks the client's user",
    object({ message: string('What to ask') }),
    ({ message }, ctx) => {
      const fields = { username: string("User's response"), email: string("User's email address") };
      return elicitation('user', message, fields, (answer) => `User response: ${outcome(answer)}`)({}, ctx);
    },
  ],
  test_elicitation_sep1034_defaults: [
    'Asks with a default for each kind of field',
    object(),
    elicitation(
      'form',
      'Please check the form',
      {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      },
      (answer) => `Elicitation completed: ${outcome(answer)}`,
    ),
  ],
  test_elicitation_sep1330_enums: [
    'Asks with each kind of choice',
    object(),
    elicitation(
      'form',
      'Please choose',
      {
        untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
        titledSingle: {
          type: 'string',
          oneOf: choices(['value1', 'First Option'], ['value2', 'Second Option'], ['value3', 'Third Option']),
        },
        legacyEnum: {
          type: 'string',
          enum: ['opt1', 'opt2', 'opt3'],
          enumNames: ['Option One', 'Option Two', 'Option Three'],
        },
        untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
        titledMulti: {
          type: 'array',
          items: {
            anyOf: choices(['value1', 'First Choice'], ['value2', 'Second Choice'], ['value3', 'Third Choice']),
          },
        },
      },
      (answer) => `Elicitation completed: ${outcome(answer)}`,
    ),
  ],
  test_streaming_elicitation: [
    'Asks from within a response stream',
    object(),
    elicitation('user_name', 'What is your name?', { name: string('Name') }, outcome),
  ],
  test_missing_capability: [
    'Cannot work without sampling',
    object(),
    (_args, ctx) =>
      answered(ctx, 'model', 'sampling')
        ? says(text('Sampled'))
        : inputRequired({ inputRequests: { model: sample('Say something') } }),
  ],
  test_trigger_tool_change: [
    'Announces a changed tool list',
    object(),
    () => (change.tools(), says(text('Announced'))),
  ],
  test_trigger_prompt_change: [
    'Announces a changed prompt list',
    object(),
    () => (change.prompts(), says(text('Announced'))),
  ],
  json_schema_2020_12_tool: [
    'Takes arguments that only JSON Schema 2020-12 describes',
    {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    (args) => says(text(JSON.stringify(args))),
  ],
  test_custom_header: [
    'Has an argument that is mirrored in a request header',
    object({ region: { type: 'string', 'x-mcp-header': 'Region' } }),
    ({ region }) => says(text(`Region: ${region}`)),
  ],
  test_input_required_result_elicitation: [
    'Asks for a name, then greets',
    object(),
    (_args, ctx) => {
      const name = acceptedContent(ctx.mcpReq.inputResponses, 'user_name')?.name;
      if (typeof name === 'string') return says(text(`Hello, ${name}!`));
      return inputRequired({
        inputRequests: { user_name: elicit('What is your name?', { name: { type: 'string' } }) },
      });
    },
  ],
  test_input_required_result_sampling: [
    'Asks the model a question, then repeats its answer',
    object(),
    (_args, ctx) => {
      const answer = answered(ctx, 'capital_question', 'sampling');
      if (answer) return says(text(answer.result.content.text ?? ''));
      return inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?') } });
    },
  ],
  test_input_required_result_list_roots: [
    "Asks for the client's roots, then names them",
    object(),
    (_args, ctx) => {
      const answer = answered(ctx, 'client_roots', 'roots');
      if (answer) return says(text(answer.roots.map((root) => root.uri).join('\n')));
      return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    },
  ],
  test_input_required_result_request_state: [
    'Asks for a confirmation and keeps state with the client',
    object(),
    confirmed('state-ok'),
  ],
  test_input_required_result_tampered_state: [
    'Refuses state that the client changed',
    object(),
    confirmed('unchanged'),
  ],
  test_input_required_result_multiple_inputs: [
    'Asks three things at once',
    object(),
    async (_args, ctx) => {
      const name = answered(ctx, 'user_name', 'elicit');
      const greeting = answered(ctx, 'greeting', 'sampling');
      const roots = answered(ctx, 'client_roots', 'roots');
      if (name && greeting && roots)
        return says(text(`${greeting.result.content.text} ${name.content?.name}, ${roots.roots.length} roots`));
      return inputRequired({
        inputRequests: {
          user_name: elicit('What is your name?', { name: { type: 'string' } }),
          greeting: sample('Generate a greeting', 50),
          client_roots: inputRequired.listRoots(),
        },
        requestState: await state.mint({ asked: 3 }),
      });
    },
  ],
  test_input_required_result_multi_round: [
    'Asks twice, the second time knowing the first answer',
    object(),
    async (_args, ctx) => {
      const before = ctx.mcpReq.requestState();
      const name = before?.name ?? acceptedContent(ctx.mcpReq.inputResponses, 'step1')?.name;
      if (name === undefined) {
        return inputRequired({
          inputRequests: { step1: elicit('Step 1: What is your name?', { name: { type: 'string' } }) },
          requestState: await state.mint({ round: 1 }),
        });
      }
      const color = acceptedContent(ctx.mcpReq.inputResponses, 'step2')?.color;
      if (color === undefined) {
        return inputRequired({
          inputRequests: { step2: elicit('Step 2: What is your favorite color?', { color: { type: 'string' } }) },
          requestState: await state.mint({ round: 2, name }),
        });
      }
      return says(text(`${name} likes ${color}`));
    },
  ],
  test_input_required_result_capabilities: [
    'Asks only for what the client says it can do',
    object(),
    (_args, ctx) => {
      if (ctx.mcpReq.inputResponses) return says(text(Object.keys(ctx.mcpReq.inputResponses).join(', ')));
      const can = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
      const inputRequests = {
        ...(can.sampling && { question: sample('What is the capital of France?') }),
        ...(can.elicitation && { user_name: elicit('What is your name?', { name: { type: 'string' } }) }),
        ...(can.roots && { client_roots: inputRequired.listRoots() }),
      };
      return Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : says(text('Nothing to ask'));
    },
  ],
});

function confirmed(word) {
  return async (_args, ctx) => {
    if (ctx.mcpReq.requestState() !== undefined && answered(ctx, 'confirm', 'elicit')) return says(text(word));
    return inputRequired({
      inputRequests: { confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) },
      requestState: await state.mint({ asked: 'confirm' }),
    });
  };
}

/** name -> [description, arguments, handler] */
const prompts = {
  test_simple_prompt: ['One line', undefined, () => asks(text('This is a simple prompt for testing.'))],
  test_prompt_with_arguments: [
    'Two arguments put into a line',
    object({ arg1: string('First test argument'), arg2: string('Second test argument') }),
    ({ arg1, arg2 }) => asks(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  ],
  test_prompt_with_embedded_resource: [
    'A resource and what to do with it',
    object({ resourceUri: string('URI of the resource to embed') }),
    ({ resourceUri }) =>
      asks(
        embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
        text('Please process the embedded resource above.'),
      ),
  ],
  test_prompt_with_image: [
    'A picture and what to do with it',
    undefined,
    () => asks(image, text('Please analyze the image above.')),
  ],
  test_input_required_result_prompt: [
    'Asks for its context first',
    undefined,
    (ctx) => {
      const context = acceptedContent(ctx.mcpReq.inputResponses, 'user_context')?.context;
      if (context !== undefined) return asks(text(`Use this context: ${context}`));
      return inputRequired({
        inputRequests: { user_context: elicit('What context should the prompt use?', { context: { type: 'string' } }) },
      });
    },
  ],
};

function registerResources(server) {
  const add = (name, uri, mimeType, content) =>
    server.registerResource(name, uri, { description: `The resource ${uri}`, mimeType }, () => ({
      contents: [{ uri, mimeType, ...content }],
    }));
  add('static-text', 'test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  add('static-binary', 'test://static-binary', 'image/png', { blob: PNG });
  add('watched-resource', 'test://watched-resource', 'text/plain', { text: 'Watched.' });
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'One resource for each id', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  );
}

/** One server object, as both eras build it: per session, or per request. `change` says how lists are announced. */
function buildServer(change) {
  const server = new McpServer(
    { name: 'callbox-interop-fixture', version: '1.0.0' },
    {
      capabilities: { completions: {}, logging: {}, resources: { subscribe: true } },
      requestState: { verify: state.verify },
      cacheHints: { 'tools/list': { ttlMs: 1000, cacheScope: 'public' } },
    },
  );
  const announce = change ?? {
    tools: () => server.sendToolListChanged(),
    prompts: () => server.sendPromptListChanged(),
  };
  for (const [name, [description, schema, handler]] of Object.entries(tools(announce))) {
    server.registerTool(name, { description, inputSchema: fromJsonSchema(schema) }, handler);
  }
  for (const [name, [description, schema, handler]] of Object.entries(prompts)) {
    server.registerPrompt(name, { description, ...(schema && { argsSchema: fromJsonSchema(schema) }) }, handler);
  }
  registerResources(server);
  server.server.setRequestHandler('completion/complete', ({ params }) => ({
    completion: {
      values: ['paris', 'park', 'party'].filter((word) => word.startsWith(params.argument.value)),
      hasMore: false,
    },
  }));
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
  return server;
}

/** Events of one session, kept so that a client can come back for what it missed. */
class Events {
  #events = [];

  async storeEvent(streamId, message) {
    this.#events.push({ streamId, message });
    return String(this.#events.length - 1);
  }

  async getStreamIdForEventId(eventId) {
    return this.#events[Number(eventId)]?.streamId;
  }

  async replayEventsAfter(eventId, { send }) {
    const { streamId } = this.#events[Number(eventId)];
    for (let index = Number(eventId) + 1; index < this.#events.length; index += 1) {
      const event = this.#events[index];
      // The event that only primes a stream carries no message.
      if (event.streamId === streamId && 'jsonrpc' in event.message) await send(String(index), event.message);
    }
    return streamId;
  }
}

const sessions = new Map();

async function serveSession(request, options) {
  const id = request.headers.get('mcp-session-id');
  if (id !== null) {
    const known = sessions.get(id);
    if (known) return known.handleRequest(request, options);
    return Response.json(
      { jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null },
      { status: 404 },
    );
  }
  // Anything but an `initialize` is refused by the transport itself, and what was built here is dropped.
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: STEP_MS,
    onsessioninitialized: (started) => void sessions.set(started, transport),
    onsessionclosed: (ended) => void sessions.delete(ended),
  });
  await buildServer().connect(transport);
  return transport.handleRequest(request, options);
}

const modern = createMcpHandler(
  () => buildServer({ tools: () => modern.notify.toolsChanged(), prompts: () => modern.notify.promptsChanged() }),
  { legacy: 'reject' },
);
const serve = toNodeHandler({
  fetch: async (request, options) =>
    (await isLegacyRequest(request)) ? serveSession(request, options) : modern.fetch(request, options),
});
const hostAllowed = localhostHostValidation();
const originAllowed = localhostOriginValidation();

const listener = createServer((request, response) => {
  if (!hostAllowed(request, response) || !originAllowed(request, response)) return;
  if (new URL(request.url, 'http://fixture').pathname !== '/mcp') {
    response.writeHead(404).end();
    return;
  }
  void serve(request, response);
});
listener.listen(Number(flags.port), '127.0.0.1', () => console.log(JSON.stringify({ port: listener.address().port })));
process.once('SIGTERM', () => process.exit(0));
