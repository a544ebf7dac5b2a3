// The Worker on this machine: the bundle in the Pyodide of production, over Miniflare's D1, R2 and Queues.
// Usage: node rig.mjs '{"app": DIRECTORY, "driver": FILE, "snapshot": FILE, "variables": {…}, "worlds": 100}'
// It prints READY with its address. Requests go to the Worker as they are; what lies under /rig/ steers the rig.
import fs from "node:fs";
import http from "node:http";
import { fileURLToPath } from "node:url";
import { Miniflare } from "miniflare";
import { loadPyodide } from "pyodide";
import { Meter, standIns } from "./bindings.mjs";
import { Ai, SendEmail, VectorizeIndexImpl } from "./fakes.mjs";

const PRELOADED = "import asyncio, base64, dataclasses, email.message, enum, hashlib, hmac, http.client, inspect, json, logging, random, re, secrets, typing, urllib.parse, uuid, zlib";
const QUEUES = { IMPORT_QUEUE: "rig-import", INDEX_QUEUE: "rig-index" };
const DEAD_LETTERS = "rig-dead-letter";
const options = JSON.parse(process.argv[2]);

if (options.makeSnapshot) {
  const made = await loadPyodide({ _makeSnapshot: true });
  made.runPython(PRELOADED);
  fs.writeFileSync(options.makeSnapshot, made.makeMemorySnapshot());
  process.exit(0);
}

// ---------------------------------------------------------------- time, which tests move

const realNow = Date.now;
let shift = 0;
Date.now = () => realNow() + shift;

// ---------------------------------------------------------------- the real bindings

const server = http.createServer((request, response) => answer(request, response));
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const SELF = `http://127.0.0.1:${server.address().port}`;
const consumer = { maxBatchTimeout: 0.05, maxRetries: 7, deadLetterQueue: DEAD_LETTERS };
/** Stores for so many worlds; another round has others under the same names. */
const configured = (round) => {
  const numbered = (prefix) =>
    Object.fromEntries(Array.from({ length: options.worlds }, (_, n) => [`${prefix}${n}`, `${prefix}${n}-${round}`.toLowerCase()]));
  return {
    modules: true,
    script: fs.readFileSync(fileURLToPath(new URL("./gateway.mjs", import.meta.url)), "utf8"),
    compatibilityDate: "2026-08-01",
    compatibilityFlags: ["nodejs_compat"],
    cf: false,
    bindings: { RIG: SELF },
    d1Databases: numbered("DB"),
    r2Buckets: numbered("BUCKET"),
    queueProducers: Object.fromEntries(Object.entries(QUEUES).map(([binding, queueName]) => [binding, { queueName }])),
    queueConsumers: {
      [QUEUES.IMPORT_QUEUE]: { ...consumer, maxBatchSize: 1 },
      [QUEUES.INDEX_QUEUE]: { ...consumer, maxBatchSize: 25 },
      [DEAD_LETTERS]: { maxBatchSize: 10, maxBatchTimeout: 0.05 },
    },
  };
};
let round = 0;
const miniflare = new Miniflare(configured(round));
let gateway = String(await miniflare.ready);

// ---------------------------------------------------------------- the environment of the Worker

const meter = new Meter();
const streams = new WeakMap();
const queued = { sent: 0, received: 0 };
const { D1Database, R2Bucket, WorkerQueue } = standIns(() => gateway, meter, streams, queued);
const AI_DIMENSIONS = 1024;
let world = 0;
let worldBegan = 0;
let env;

function newWorld({ variables = {}, vectorDelay = 0 } = {}) {
  meter.reset();
  worldBegan = realNow();
  env = {
    MEMORY_DB: new D1Database({ label: "MEMORY_DB", name: `DB${world}` }),
    MEMORY_BUCKET: new R2Bucket({ label: "MEMORY_BUCKET", name: `BUCKET${world}` }),
    MEMORY_VECTOR: new VectorizeIndexImpl(meter, { dimensions: AI_DIMENSIONS, metadataIndexes: ["account", "generation", "namespace"], delay: vectorDelay }),
    IMPORT_QUEUE: new WorkerQueue({ label: "IMPORT_QUEUE", name: "IMPORT_QUEUE" }),
    INDEX_QUEUE: new WorkerQueue({ label: "INDEX_QUEUE", name: "INDEX_QUEUE" }),
    AI: new Ai(meter, AI_DIMENSIONS),
    EMAIL: new SendEmail(meter),
    PUBLIC_URL: SELF,
    ...options.variables,
    ...variables,
  };
  world++;
  held.length = 0;
  mode = "deliver";
  queued.received = queued.sent;
  coldStart();
}

// ---------------------------------------------------------------- Python

const lines = [];
const started = performance.now();
const python = await loadPyodide({
  stdout: (line) => lines.push(line) > 10_000 && lines.shift(),
  stderr: (line) => lines.push(line),
  ...(options.snapshot && fs.existsSync(options.snapshot) ? { _loadSnapshot: fs.readFileSync(options.snapshot) } : {}),
});
const WorkerEntrypoint = class {};
python.registerJsModule("_pyodide_entrypoint_helper", {
  doAnImport: (name) => import(name),
  cloudflareWorkersModule: { waitUntil: (promise) => promise, WorkerEntrypoint },
  cloudflareSocketsModule: {},
  workerEntrypoint: WorkerEntrypoint,
  patchWaitUntil() {},
});
python.registerJsModule("_cloudflare_compat_flags", { python_workflows_implicit_dependencies: true, python_request_headers_preserve_commas: true });
python.runPython(PRELOADED);
python.mountNodeFS("/session/metadata", options.app);
const loadedAt = performance.now();
const driver = python.runPython(fs.readFileSync(options.driver, "utf8"));
const atImport = (work) => {
  const io = { fetch: globalThis.fetch, setTimeout: globalThis.setTimeout };
  const randomness = globalThis.crypto.getRandomValues;
  Object.assign(globalThis, { fetch: no("fetch"), setTimeout: no("a timer") });
  globalThis.crypto.getRandomValues = no("randomness");
  try {
    return work();
  } finally {
    Object.assign(globalThis, io);
    globalThis.crypto.getRandomValues = randomness;
  }
};
const no = (what) => () => { throw new Error(`${what} at import time is refused by the snapshot`); };
atImport(() => driver.import_entry());
const importedAt = performance.now();
const heap = () => python._module.HEAPU8.length;
const heapAfterImport = heap();
const coldStart = () => atImport(() => driver.cold_start());
const context = { waitUntil: (promise) => promise };
const dispatch = (name, ...args) => driver.dispatch(context, env, name, ...args);

// ---------------------------------------------------------------- queues

const held = [];
let mode = "deliver";

async function handle(queue, messages) {
  const decisions = {};
  const objects = messages.map((message) => ({
    ...message,
    timestamp: new Date(message.timestamp ?? Date.now()),
    ack: () => (decisions[message.id] = { action: "ack" }),
    retry: (given) => (decisions[message.id] = { action: "retry", delaySeconds: given?.delaySeconds }),
  }));
  const batch = { queue, messages: objects, ackAll: () => objects.forEach((one) => one.ack()), retryAll: () => objects.forEach((one) => one.retry()) };
  try {
    await dispatch("queue", batch, env, context);
    return { decisions };
  } catch (error) {
    return { decisions, error: String(error).slice(-2000) };
  }
}

async function batch({ queue, messages, now = false }) {
  if (now) return handle(queue, messages);
  // What an earlier world left in Miniflare's queues, waiting for another try, is no concern of this one.
  const stale = messages.filter(({ timestamp }) => Date.parse(timestamp) < worldBegan);
  if (stale.length) {
    const { decisions } = await batch({ queue, messages: messages.filter((message) => !stale.includes(message)) });
    return { decisions: { ...decisions, ...Object.fromEntries(stale.map(({ id }) => [id, { action: "ack" }])) } };
  }
  if (!messages.length) return { decisions: {} };
  if (queue !== DEAD_LETTERS) queued.received += messages.length;
  if (mode === "deliver") return handle(queue, messages);
  if (mode === "hold") held.push(...messages.map((message) => ({ queue, message, due: 0 })));
  return { decisions: Object.fromEntries(messages.map(({ id }) => [id, { action: "ack" }])) };
}

/** Hands over held messages by their places, in that order, a place named twice twice; kept ones stay held. */
async function deliver({ places, keep = false, together = false }) {
  const chosen = places.map((place) => held[place]);
  if (!keep) for (const one of new Set(chosen)) held.splice(held.indexOf(one), 1);
  if (together) return [await handle(chosen[0].queue, chosen.map(({ message }) => message))];
  const results = [];
  for (const { queue, message } of chosen) results.push(await handle(queue, [message]));
  return results;
}

/** Lets the Worker handle what is held and due, queue by queue, until there is no more and none is on its way. */
async function drain() {
  for (;;) {
    const due = held.filter((one) => one.due <= Date.now());
    if (!due.length) {
      if (queued.received >= queued.sent) return;
      await new Promise((ready) => setTimeout(ready, 10));
      continue;
    }
    const { queue } = due[0];
    const taken = due.filter((one) => one.queue === queue).slice(0, queue === QUEUES.IMPORT_QUEUE ? 1 : 25);
    for (const one of taken) held.splice(held.indexOf(one), 1);
    const { decisions, error } = await handle(queue, taken.map(({ message }) => message));
    for (const { message } of taken) {
      const decision = decisions[message.id];
      if (decision?.action === "ack" && !error) continue;
      const again = { ...message, attempts: message.attempts + 1 };
      held.push({ queue, message: again, due: Date.now() + 1000 * (decision?.delaySeconds ?? 1) });
    }
  }
}

// ---------------------------------------------------------------- steering

const steering = {
  batch,
  deliver,
  drain,
  now: async () => Date.now(),
  world: async (given) => {
    if (world === options.worlds) {
      await miniflare.setOptions(configured(++round));
      gateway = String(await miniflare.ready);
      world = 0;
    }
    newWorld(given);
  },
  call: async ({ call }) => ({ result: await driver.call(env, call) }),
  probe: async ({ line }) => {
    try {
      atImport(() => driver.probe(line));
      return { error: "" };
    } catch (error) {
      return { error: String(error) };
    }
  },
  run: async ({ source, data }) => ({ result: await driver.run(env, source, data) }),
  fault: async (fault) => Object.assign(meter, { fault: fault.binding ? { seen: 0, message: "injected", ...fault } : null, fired: 0 }),
  mode: async (given) => void (mode = given.mode),
  underway: async () => held.length > 0 || queued.received < queued.sent,
  lose: async () => void (held.length = 0),
  held: async () => held.map(({ queue, message }) => ({ queue, body: message.body })),
  clock: async ({ advance }) => void (shift += advance),
  cold: async () => coldStart(),
  scheduled: async () => void (await dispatch("scheduled", { cron: "* * * * *", scheduledTime: Date.now(), noRetry() {} }, env, context)),
  settle: async ({ name = "MEMORY_VECTOR" }) => env[name].settle(),
  vectorize: async (given) => void (env[given.name] = new VectorizeIndexImpl(meter, given)),
  mail: async () => env.EMAIL.sent,
  log: async () => lines.splice(0),
  meter: async () => {
    const { calls, byBinding, milliseconds, fired } = meter;
    Object.assign(meter, { calls: 0, byBinding: {}, milliseconds: 0 });
    return { calls, byBinding, milliseconds, fired, heap: heap(), heapAfterImport, texts: env.AI.texts, cpu: process.cpuUsage(), loadMs: loadedAt - started, importMs: importedAt - loadedAt };
  },
};

async function answer(request, response) {
  try {
    if (request.url.startsWith("/rig/")) {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const given = chunks.length ? JSON.parse(Buffer.concat(chunks)) : {};
      const value = await steering[request.url.slice(5)](given);
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify(value ?? null));
    }
    await serve(request, response);
  } catch (error) {
    lines.push(String(error?.stack ?? error));
    if (!response.headersSent) response.writeHead(500);
    response.end(String(error).slice(-3000));
  }
}

async function serve(request, response) {
  const headers = new Headers();
  for (let n = 0; n < request.rawHeaders.length; n += 2) headers.append(request.rawHeaders[n], request.rawHeaders[n + 1]);
  const hasBody = !["GET", "HEAD"].includes(request.method) && (request.headers["content-length"] > 0 || request.headers["transfer-encoding"]);
  const chunks = request.iterator({ destroyOnReturn: false });
  const pull = async (controller) => {
    const { value, done } = await chunks.next();
    done ? controller.close() : controller.enqueue(new Uint8Array(value));
  };
  const body = hasBody ? { body: new ReadableStream({ pull }, { highWaterMark: 0 }), duplex: "half" } : {};
  const made = new Request(SELF + request.url, { method: request.method, headers, redirect: "manual", ...body });
  if (made.body && request.headers["content-length"]) streams.set(made.body, Number(request.headers["content-length"]));
  const result = await dispatch("fetch", made);
  const answered = Object.fromEntries(result.headers);
  const cookies = result.headers.getSetCookie();
  if (cookies.length) answered["set-cookie"] = cookies;
  response.writeHead(result.status, answered);
  if (result.body) for await (const chunk of result.body) response.write(chunk);
  response.end();
  // As Cloudflare does, take what the Worker left unread, for clients that send all before they listen.
  try {
    while (hasBody && !(await chunks.next()).done);
  } catch {
    return; // the client went away
  }
}

newWorld();
console.log(`READY ${SELF}`);
