// The client under test for the official conformance suite's client scenarios.
//
//   node fixture-client.mjs URL
//
// The suite names the scenario, the revision and what else the client has to know in
// MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT (JSON). The
// client does the same in nearly all of them: connect, sign in when asked to, list everything, use
// everything once, leave. It exits 1 when that fails, which some scenarios want.
import {
  Client,
  ClientCredentialsProvider,
  CrossAppAccessProvider,
  DpopSession,
  PrivateKeyJwtProvider,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  requestJwtAuthorizationGrant,
} from '@modelcontextprotocol/client';

const url = new URL(process.argv.at(-1));
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const revision = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? '2025-11-25';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const MODERN = '2026-07-28';
const SIGN_INS_PER_REQUEST = 2;

/** A user with a browser who agrees to everything: the redirect is followed on the spot. */
class Browser {
  clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
  redirectUrl = 'http://127.0.0.1:9/callback';
  clientMetadata = {
    client_name: 'callbox-interop-client',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: 'native',
  };
  callback;
  #registered;
  #tokens;
  #verifier;
  #discovered;
  #dpop;

  constructor({ registered, dpop }) {
    this.#registered = registered;
    if (dpop) {
      this.#dpop = DpopSession.create();
      this.dpop = () => this.#dpop;
    }
  }

  clientInformation = () => this.#registered;
  saveClientInformation = (registered) => void (this.#registered = registered);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => {
    this.#tokens = tokens;
    // Good for one sign-in: by the next one the server may name another authorization server.
    this.#discovered = undefined;
  };
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  discoveryState = () => this.#discovered;
  saveDiscoveryState = (discovered) => void (this.#discovered = discovered);
  invalidateCredentials = (what) => {
    if (what === 'all' || what === 'client') this.#registered = undefined;
    if (what === 'all' || what === 'tokens') this.#tokens = undefined;
    if (what === 'all' || what === 'discovery') this.#discovered = undefined;
  };

  async redirectToAuthorization(authorizationUrl) {
    const response = await fetch(authorizationUrl, { redirect: 'manual' });
    const location = response.headers.get('location');
    if (location === null) throw new Error(`the authorization server did not redirect back: ${response.status}`);
    this.callback = new URL(location).searchParams;
  }
}

/** A workload that already holds a signed statement of who it is, and trades it for a token. */
class Workload {
  redirectUrl = undefined;
  clientMetadata = { client_name: 'callbox-interop-workload', redirect_uris: [], token_endpoint_auth_method: 'none' };
  #tokens;

  clientInformation = () => ({ client_id: context.client_id });
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  redirectToAuthorization = () => {
    throw new Error('a workload has no browser');
  };
  saveCodeVerifier = () => {};
  codeVerifier = () => '';
  prepareTokenRequest = (scope) =>
    new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: context.valid_jwt,
      ...(scope && { scope }),
    });
}

function credentials() {
  const { client_id: clientId, client_secret: clientSecret } = context;
  switch (scenario) {
    case 'auth/client-credentials-jwt':
      return new PrivateKeyJwtProvider({
        clientId,
        privateKey: context.private_key_pem,
        algorithm: context.signing_algorithm,
      });
    case 'auth/client-credentials-basic':
      return new ClientCredentialsProvider({ clientId, clientSecret });
    case 'auth/enterprise-managed-authorization':
      return new CrossAppAccessProvider({
        clientId,
        clientSecret,
        assertion: async ({ authorizationServerUrl, resourceUrl, scope, fetchFn }) => {
          const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
            tokenEndpoint: context.idp_token_endpoint,
            audience: authorizationServerUrl,
            resource: resourceUrl,
            idToken: context.idp_id_token,
            clientId: context.idp_client_id,
            scope,
            fetchFn,
          });
          return jwtAuthGrant;
        },
      });
    case 'auth/wif-jwt-bearer':
      return new Workload();
    case 'auth/pre-registration':
      return new Browser({ registered: { client_id: clientId, client_secret: clientSecret, issuer: context.issuer } });
    default:
      return new Browser({ dpop: scenario.startsWith('auth/dpop') });
  }
}

/** A value that fits a schema, the schema's own default first. */
function sampleOf(schema = {}) {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.oneOf) return sampleOf(schema.oneOf[0]);
  if (schema.anyOf) return sampleOf(schema.anyOf[0]);
  switch (schema.type) {
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((name) => [name, sampleOf(schema.properties?.[name])]));
    case 'array':
      return [];
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return true;
    default:
      return 'test';
  }
}

function newClient() {
  const client = new Client(
    { name: 'callbox-interop-client', version: '1.0.0' },
    {
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      versionNegotiation: { mode: revision >= MODERN ? 'auto' : 'legacy' },
    },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => ({
    action: 'accept',
    content: Object.fromEntries(
      Object.entries(params.requestedSchema?.properties ?? {}).map(([name, schema]) => [name, sampleOf(schema)]),
    ),
  }));
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'An answer' },
  }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///interop', name: 'interop' }] }));
  return client;
}

/** Runs one step; when the server wants a sign-in first, signs in through `transport()` and runs it again. */
async function signedIn(provider, transport, step) {
  for (let signIns = 0; ; signIns += 1) {
    try {
      return await step();
    } catch (error) {
      const callback = provider.callback;
      if (!(error instanceof UnauthorizedError) || callback === undefined || signIns === SIGN_INS_PER_REQUEST)
        throw error;
      provider.callback = undefined;
      await transport().finishAuth(callback);
    }
  }
}

/** The calls a scenario wants: its own list, or each listed tool once. */
function callsFor(tools) {
  if (context.toolCalls) return context.toolCalls;
  // The tool of this scenario exists to be listed only.
  if (scenario === 'json-schema-ref-no-deref') return [];
  const focal = tools.find((tool) => tool.name === 'json_schema_2020_12_tool');
  if (focal) return [{ name: 'json_schema_echo', arguments: { schema: focal.inputSchema } }];
  return tools.map((tool) => ({ name: tool.name, arguments: sampleOf(tool.inputSchema) }));
}

async function main() {
  const provider = credentials();
  let transport;
  let client;
  const patiently = (step) => signedIn(provider, () => transport, step);

  await patiently(async () => {
    transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
    client = newClient();
    await client.connect(transport);
  });

  const { tools } = await patiently(() => client.listTools());
  for (const call of callsFor(tools)) await patiently(() => client.callTool(call));

  const offers = client.getServerCapabilities() ?? {};
  if (offers.resources) {
    const { resources } = await patiently(() => client.listResources());
    for (const { uri } of resources) await patiently(() => client.readResource({ uri }));
  }
  if (offers.prompts) {
    const { prompts } = await patiently(() => client.listPrompts());
    for (const { name } of prompts) await patiently(() => client.getPrompt({ name }));
  }
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
