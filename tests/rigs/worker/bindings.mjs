// What the Worker's environment holds here: stand-ins whose class names are those of Cloudflare's bindings, in front of
// the real D1, R2 and Queues that Miniflare runs. Each call is counted and timed, and can be made to fail.

const plain = (value) => {
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  if (value instanceof ArrayBuffer) return { $bytes: Buffer.from(value).toString("base64") };
  if (value?.$chain) return { $chain: value.$chain };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError("not a finite number");
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
  return value;
};

const decodedBytes = (value) => {
  if (Array.isArray(value)) return value.map(decodedBytes);
  if (value && typeof value === "object") {
    if ("$bytes" in value) return new Uint8Array(Buffer.from(value.$bytes, "base64")).buffer;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, decodedBytes(item)]));
  }
  return value;
};

const asObject = (found) => (found ? { ...found, uploaded: new Date(found.uploaded), httpEtag: `"${found.etag}"` } : null);

/** Counts calls by binding, and fails the ones it was told to: before they reach the store, or after they took effect. */
export class Meter {
  constructor() {
    this.reset();
  }

  reset() {
    this.calls = 0;
    this.byBinding = {};
    this.milliseconds = 0;
    this.fault = null;
    this.fired = 0;
    this.inFlight = 0;
  }

  async run(binding, call) {
    const index = this.calls++;
    this.byBinding[binding] = (this.byBinding[binding] ?? 0) + 1;
    const fault = this.fault;
    const seen = fault && (fault.binding === "*" || fault.binding === binding) ? fault.seen++ : -1;
    const fails = fault && (fault.forever ? seen >= fault.at : seen === fault.at);
    if (fails) this.fired++;
    if (fails && fault.when === "before") throw new Error(fault.message);
    const started = performance.now();
    if (this.inFlight++ === 0) this.since = started;
    try {
      const value = await call();
      if (fails) throw new Error(fault.message);
      return value;
    } finally {
      if (--this.inFlight === 0) this.milliseconds += performance.now() - this.since;
    }
  }
}

/**
 * @param queued counts, in `sent`, the messages that the queues took.
 * @param gateway tells the URL of the Worker with the real bindings. @param streams lengths of request bodies, by stream.
 * @returns classes to put any binding of the gateway behind, given as { label, name }: what the Worker calls it, and the
 *   gateway.
 */
export function standIns(gateway, meter, streams, queued) {
  const answered = async (response) => {
    const { value, error } = await response.json();
    if (error) throw Object.assign(new Error(error.message), { name: error.name });
    return decodedBytes(value);
  };
  const chain = (binding, calls) =>
    meter.run(binding.label, async () =>
      answered(await fetch(gateway(), { method: "POST", body: JSON.stringify([binding.name, plain(calls)]) })),
    );
  const object = (binding, calls, method, args, body) =>
    meter.run(binding.label, async () => {
      const length = body instanceof ReadableStream ? streams.get(body) : (body?.byteLength ?? 0);
      if (length === undefined) throw new TypeError("Provided readable stream must have a known length (request/response body or readable half of FixedLengthStream)");
      const about = encodeURIComponent(JSON.stringify({ binding: binding.name, calls, method, args: plain(args), length }));
      return fetch(gateway(), { method: "POST", headers: { "x-object": about }, body: length ? body : undefined, duplex: "half" });
    });

  class D1PreparedStatement {
    constructor(binding, calls) {
      this.binding = binding;
      this.$chain = [binding.name, plain(calls)];
    }
    bind(...values) {
      for (const value of values)
        if (value === undefined || typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)))
          throw new Error(`D1_TYPE_ERROR: Type '${typeof value}' not supported for value`);
      return new D1PreparedStatement(this.binding, [...this.$chain[1], ["bind", values]]);
    }
    all() {
      return chain(this.binding, [...this.$chain[1], ["all", []]]);
    }
    run() {
      return chain(this.binding, [...this.$chain[1], ["run", []]]);
    }
  }
  class D1Database {
    constructor(binding) {
      this.binding = binding;
    }
    prepare(sql) {
      return new D1PreparedStatement(this.binding, [["prepare", [sql]]]);
    }
    batch(statements) {
      return chain(this.binding, [["batch", [Array.from(statements)]]]);
    }
  }

  class R2ObjectBody {}
  class R2MultipartUpload {
    constructor(binding, key, uploadId) {
      Object.assign(this, { binding, key, uploadId });
    }
    get resumed() {
      return [["resumeMultipartUpload", [this.key, this.uploadId]]];
    }
    async uploadPart(number, body) {
      return answered(await object(this.binding, this.resumed, "uploadPart", [number], body));
    }
    async complete(parts) {
      return asObject(await chain(this.binding, [...this.resumed, ["complete", [Array.from(parts)]]]));
    }
    async abort() {
      await chain(this.binding, [...this.resumed, ["abort", []]]);
    }
  }
  class R2Bucket {
    constructor(binding) {
      this.binding = binding;
    }
    async put(key, body, options) {
      return asObject(await answered(await object(this.binding, [], "put", [key, options], body)));
    }
    async get(key, options) {
      const response = await object(this.binding, [], "get", [key, options]);
      const about = response.headers.get("x-object");
      if (!about) return asObject(await answered(response));
      return Object.assign(new R2ObjectBody(), asObject(JSON.parse(decodeURIComponent(about))), {
        body: response.body,
        arrayBuffer: () => response.arrayBuffer(),
      });
    }
    async head(key) {
      return asObject(await chain(this.binding, [["head", [key]]]));
    }
    async delete(keys) {
      await chain(this.binding, [["delete", [keys]]]);
    }
    async list(options) {
      const page = await chain(this.binding, [["list", [options]]]);
      return { ...page, objects: page.objects.map(asObject) };
    }
    async createMultipartUpload(key) {
      const { uploadId } = await chain(this.binding, [["createMultipartUpload", [key]]]);
      return new R2MultipartUpload(this.binding, key, uploadId);
    }
    resumeMultipartUpload(key, uploadId) {
      return new R2MultipartUpload(this.binding, key, uploadId);
    }
  }

  class WorkerQueue {
    constructor(binding) {
      this.binding = binding;
    }
    async sendBatch(messages, options) {
      await chain(this.binding, [["sendBatch", [Array.from(messages), options]]]);
      queued.sent += messages.length;
    }
  }

  return { D1Database, R2Bucket, WorkerQueue };
}
