// The Worker that runs in workerd beside Pyodide. It replays a chain of calls on a real binding and passes the batches
// of its queues on. Bodies of R2 objects travel as they are, everything else as JSON.

const encoded = (value) => {
  if (value instanceof ArrayBuffer) return { $bytes: Buffer.from(value).toString("base64") };
  if (Array.isArray(value)) return value.map(encoded);
  if (value && typeof value === "object" && "etag" in value && "partNumber" in value)
    return { partNumber: value.partNumber, etag: value.etag };
  if (value && typeof value === "object" && "httpEtag" in value) return described(value);
  if (value && typeof value === "object" && "uploadId" in value) return { key: value.key, uploadId: value.uploadId };
  if (value && typeof value === "object" && "objects" in value)
    return { ...value, objects: value.objects.map(described), delimitedPrefixes: value.delimitedPrefixes };
  return value;
};

const described = ({ key, size, etag, version, uploaded }) => ({ key, size, etag, version, uploaded: +uploaded });

const decoded = (value, env) => {
  if (Array.isArray(value)) return value.map((item) => decoded(item, env));
  if (!value || typeof value !== "object") return value;
  if ("$bytes" in value) return Uint8Array.from(Buffer.from(value.$bytes, "base64"));
  if ("$chain" in value) return replay(value.$chain, env);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, decoded(item, env)]));
};

const replay = ([binding, calls], env) =>
  calls.reduce((target, [method, args]) => target[method](...args.map((arg) => decoded(arg, env))), env[binding]);

async function stored(request, env) {
  const { binding, calls, method, args, length } = JSON.parse(decodeURIComponent(request.headers.get("x-object")));
  const target = calls.reduce((found, [name, given]) => found[name](...given), env[binding]);
  if (method === "get") {
    const found = await target.get(...args);
    if (!found) return Response.json({ value: null });
    const about = encodeURIComponent(JSON.stringify(described(found)));
    return new Response(found.body, { headers: { "x-object": about } });
  }
  // As in production, R2 takes a stream only if it knows where it ends.
  let body = new Uint8Array();
  if (length) {
    const fixed = new FixedLengthStream(length);
    request.body.pipeTo(fixed.writable).catch(() => {});
    body = fixed.readable;
  }
  const [name, options] = args;
  return Response.json({ value: encoded(await target[method](name, body, options ?? undefined)) ?? null });
}

export default {
  async fetch(request, env) {
    try {
      if (request.headers.has("x-object")) return await stored(request, env);
      const value = await decoded({ $chain: await request.json() }, env);
      return Response.json({ value: encoded(value) ?? null });
    } catch (error) {
      return Response.json({ error: { name: error.name, message: error.message } });
    }
  },

  async queue(batch, env) {
    const messages = batch.messages.map(({ id, body, attempts, timestamp }) => ({ id, body, attempts, timestamp }));
    const answer = await fetch(`${env.RIG}/rig/batch`, {
      method: "POST",
      body: JSON.stringify({ queue: batch.queue, messages }),
    });
    const { decisions, error } = await answer.json();
    if (error) throw new Error(error);
    for (const message of batch.messages) {
      const decision = decisions[message.id];
      if (decision?.action === "retry") message.retry({ delaySeconds: decision.delaySeconds ?? 0 });
      else if (decision?.action === "ack") message.ack();
    }
  },
};
