// One session of a TypeScript client: lists the tools, stores a memory, finds it, is refused once; prints what it saw.
// Arguments: "v1" for the older SDK or an era for the newer client, then the endpoint, the token and a rare word.
const [, , line, url, token, word] = process.argv;
const options = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };
const info = { name: 'mempersist-tests', version: '1.0.0' };

async function connected() {
  if (line === 'v1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const mode = line === 'auto' || line === 'legacy' ? line : { pin: line };
  const client = new Client(info, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return client;
}

const client = await connected();
const { tools } = await client.listTools();
const stored = await client.callTool({
  name: 'memory_store',
  arguments: { title: 'From TypeScript', messages: [{ role: 'user', content: `a ${word} memory` }] },
});
const found = await client.callTool({ name: 'memory_search', arguments: { query: word } });
const refused = await client.callTool({ name: 'memory_search', arguments: { query: word, limit: 21 } });
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), stored, found, refused }));
