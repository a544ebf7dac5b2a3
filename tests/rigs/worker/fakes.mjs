// Fakes of what has no local form: Vectorize, Workers AI and mail. They hold to Cloudflare's documentation of each:
// limits that refuse, filters on indexed metadata only, strings indexed on their first 64 bytes, and mutations that are
// accepted at once and seen later. tests/test_worker_fakes.py holds them to it.

const refused = (code, text) => Object.assign(new Error(`VECTOR_${code}: ${text}`), { name: "VectorizeError" });
const utf8 = new TextEncoder();

const indexed = (value) => {
  if (typeof value !== "string") return value;
  const bytes = utf8.encode(value);
  return bytes.length <= 64 ? value : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.slice(0, 64), { stream: true });
};

const operators = {
  $eq: (stored, wanted) => stored === wanted,
  $ne: (stored, wanted) => stored !== wanted,
  $in: (stored, wanted) => wanted.includes(stored),
  $nin: (stored, wanted) => !wanted.includes(stored),
  $lt: (stored, wanted) => typeof stored === typeof wanted && stored < wanted,
  $lte: (stored, wanted) => typeof stored === typeof wanted && stored <= wanted,
  $gt: (stored, wanted) => typeof stored === typeof wanted && stored > wanted,
  $gte: (stored, wanted) => typeof stored === typeof wanted && stored >= wanted,
};

const cosine = (one, other) => {
  let dot = 0, a = 0, b = 0;
  for (let i = 0; i < one.length; i++) {
    dot += one[i] * other[i];
    a += one[i] * one[i];
    b += other[i] * other[i];
  }
  return a && b ? dot / Math.sqrt(a) / Math.sqrt(b) : 0;
};

export class VectorizeIndexImpl {
  /** @param delay milliseconds until a mutation is seen; null leaves that to settle(). */
  constructor(meter, { dimensions, metadataIndexes, delay }) {
    Object.assign(this, { meter, dimensions, metadataIndexes, delay });
    this.vectors = new Map();
    this.pending = [];
    this.mutations = 0;
  }

  settle() {
    for (const mutation of this.pending.splice(0)) mutation();
  }

  #accepted(mutation) {
    if (this.delay === 0) mutation();
    else this.pending.push(mutation);
    if (this.delay) setTimeout(() => this.settle(), this.delay);
    return { mutationId: String(++this.mutations) };
  }

  #vector(values) {
    const numbers = Float32Array.from(values);
    if (numbers.length !== this.dimensions)
      throw refused("UPSERT_ERROR", `expected ${this.dimensions} dimensions, and got ${numbers.length} (code = 40012)`);
    if (!numbers.every(Number.isFinite)) throw refused("UPSERT_ERROR", "values must be finite (code = 40006)");
    return numbers;
  }

  upsert(vectors) {
    return this.meter.run("MEMORY_VECTOR", async () => {
      if (vectors.length > 1000) throw refused("UPSERT_ERROR", "too many vectors in one call (code = 40005)");
      const taken = vectors.map(({ id, values, metadata }) => {
        if (!id || utf8.encode(id).length > 64) throw refused("UPSERT_ERROR", "id is too long, max is 64 bytes (code = 40008)");
        const text = JSON.stringify(metadata ?? {});
        if (utf8.encode(text).length > 10240) throw refused("UPSERT_ERROR", "metadata is too big (code = 40009)");
        return [id, { values: this.#vector(values), metadata: JSON.parse(text) }];
      });
      return this.#accepted(() => taken.forEach(([id, vector]) => this.vectors.set(id, vector)));
    });
  }

  deleteByIds(ids) {
    return this.meter.run("MEMORY_VECTOR", async () => {
      if (ids.length > 100) throw refused("DELETE_ERROR", "too many ids in payload; max id count is 100 (code = 40007)");
      const gone = Array.from(ids);
      return this.#accepted(() => gone.forEach((id) => this.vectors.delete(id)));
    });
  }

  getByIds(ids) {
    return this.meter.run("MEMORY_VECTOR", async () => {
      if (ids.length > 20) throw refused("GET_ERROR", "too many ids in payload; max id count is 20 (code = 40007)");
      return Array.from(ids)
        .filter((id) => this.vectors.has(id))
        .map((id) => ({ id, values: Array.from(this.vectors.get(id).values), metadata: this.vectors.get(id).metadata }));
    });
  }

  query(vector, { topK = 5, filter = {}, returnMetadata = "none", returnValues = false } = {}) {
    return this.meter.run("MEMORY_VECTOR", async () => {
      const most = returnValues || returnMetadata === "all" ? 20 : 100;
      if (topK < 1 || topK > most) throw refused("QUERY_ERROR", `topK must be between 1 and ${most} (code = 40025)`);
      if (utf8.encode(JSON.stringify(filter)).length >= 2048) throw refused("QUERY_ERROR", "filter is too big (code = 40026)");
      const tests = Object.entries(filter).map(([key, condition]) => {
        const wanted = condition !== null && typeof condition === "object" ? condition : { $eq: condition };
        if (Object.keys(wanted).some((name) => !(name in operators))) throw refused("QUERY_ERROR", "unknown operator (code = 40026)");
        // A key without a metadata index matches nothing: Vectorize does not complain.
        return ({ metadata }) => {
          const stored = this.metadataIndexes.includes(key) ? indexed(metadata[key]) : undefined;
          return Object.entries(wanted).every(([name, operand]) => operators[name](stored, operand));
        };
      });
      const target = this.#vector(vector);
      const matches = [...this.vectors]
        .filter(([, stored]) => tests.every((test) => test(stored)))
        .map(([id, stored]) => ({ id, score: cosine(stored.values, target), metadata: stored.metadata }))
        .sort((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
        .slice(0, topK)
        .map(({ id, score, metadata }) => (returnMetadata === "all" ? { id, score, metadata } : { id, score }));
      return { count: matches.length, matches };
    });
  }

  describe() {
    return this.meter.run("MEMORY_VECTOR", async () => ({
      vectorCount: this.vectors.size,
      dimensions: this.dimensions,
      processedUpToDatetime: new Date().toISOString(),
      processedUpToMutation: String(this.mutations - this.pending.length),
    }));
  }
}

/** Words hashed into dimensions: texts that share words are closer. It knows nothing of meaning. */
export class Ai {
  constructor(meter, dimensions) {
    Object.assign(this, { meter, dimensions });
    this.texts = 0;
  }

  run(model, { text }) {
    return this.meter.run("AI", async () => {
      if (model !== "@cf/baai/bge-m3") throw new Error(`InferenceUpstreamError: 5007: No such model ${model}`);
      const texts = Array.isArray(text) ? text : [text];
      if (texts.length > 100) throw new Error("InferenceUpstreamError: 3030: batch size limit 100 exceeded");
      if (texts.some((item) => typeof item !== "string" || !item)) throw new Error("InferenceUpstreamError: 5006: bad input");
      this.texts += texts.length;
      return { shape: [texts.length, this.dimensions], data: texts.map((item) => this.#vector(item)), pooling: "cls" };
    });
  }

  #vector(text) {
    const values = new Array(this.dimensions).fill(0);
    for (const word of text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean)) {
      let hash = 0x811c9dc5;
      for (const byte of utf8.encode(word)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
      values[hash % this.dimensions] += 1;
      values[(hash >>> 11) % this.dimensions] += hash & 1 ? 0.5 : -0.5;
    }
    if (!values.some(Boolean)) values[0] = 1;
    const length = Math.hypot(...values);
    return values.map((value) => value / length);
  }
}

/** Mail that goes nowhere but into `sent`. */
export class SendEmail {
  constructor(meter) {
    Object.assign(this, { meter, sent: [] });
  }

  send({ from, to, subject, text, html }) {
    return this.meter.run("EMAIL", async () => {
      if (!from || !to || !subject || !(text || html)) throw new Error("email.sending.error.email.invalid: a field is missing");
      this.sent.push({ from, to, subject, text, ...(html ? { html } : {}) });
      return { messageId: String(this.sent.length) };
    });
  }
}
