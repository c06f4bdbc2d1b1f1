// An engine inside the page: the runtime as a WebAssembly module in a worker (worker.js), with a model that came with the
// site. It answers what a server would answer, and sends nothing anywhere.

import { ServerError } from "./errors.js";

// The smallest modules with an instruction on vectors, and with a handler of exceptions.
const HEADER = [0, 97, 115, 109, 1, 0, 0, 0];
const VECTORS = [...HEADER, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11];
const EXCEPTIONS = [...HEADER, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 6, 64, 25, 11, 11];

function requireWebAssembly() {
  const runs = typeof WebAssembly === "object" && [VECTORS, EXCEPTIONS].every((module) => WebAssembly.validate(Uint8Array.from(module)));
  if (runs) return;
  throw new ServerError(501, "This browser cannot run the model: it lacks WebAssembly with SIMD and exceptions. "
    + "Chrome 95, Firefox 100, Safari 16.4 and newer have both.");
}

// The bytes of an element that holds a file, compressed by gzip, as base64.
async function inlined(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (character) => character.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).arrayBuffer();
}

// A file of the site: inside the page, or at an address that the worker fetches.
async function located(file) {
  if (file.inline === undefined) return { ...file, url: new URL(file.path, document.baseURI).href };
  try {
    return { ...file, data: await inlined(file.inline) };
  } catch {
    throw new ServerError(500, `${file.name} is damaged: it cannot be unpacked. Copy the page again.`);
  }
}

async function startWorker(scripts) {
  if (scripts[0].inline === undefined) return new Worker(new URL(scripts.at(-1).path, document.baseURI));
  const texts = await Promise.all(scripts.map(({ inline }) => inlined(inline)));
  return new Worker(URL.createObjectURL(new Blob(texts, { type: "text/javascript" })));
}

export class WasmEngine {
  #worker;
  #waiting = new Map(); // calls and streams without an end, by number: what to do with a message
  #numbers = 0;
  #memory = 0;
  #broken = null;

  // Loads the model of `site`, the description that ./lattice export-web writes into the page. Calls `progress` with the
  // part of its bytes that have arrived.
  static async start(site, progress) {
    requireWebAssembly();
    const engine = new WasmEngine();
    engine.#worker = await startWorker(site.scripts);
    engine.#worker.addEventListener("message", ({ data }) => (data.progress === undefined ? engine.#take(data) : progress(data.progress)));
    engine.#worker.addEventListener("error", (event) => engine.#break(`The model's module has stopped: ${event.message}. Load the page again.`));
    const [module, ...files] = await Promise.all([site.module, ...site.files].map(located));
    const buffers = [module, ...files].filter(({ data }) => data).map(({ data }) => data);
    await engine.#ask({ start: { name: site.name, module, files } }, buffers);
    return engine;
  }

  get facts() {
    return `runs in this page, in ${Math.round(this.#memory / 2 ** 20)} MiB`;
  }

  async call(method, path, body) {
    return this.#ask({ method, path, body: body === undefined ? "" : JSON.stringify(body) });
  }

  async *stream(path, body, signal) {
    const arrived = [];
    let wake = () => {};
    const number = this.#send({ stream: path, body: JSON.stringify(body) }, (message) => {
      arrived.push(message);
      wake();
    });
    const abort = () => {
      this.#worker.postMessage({ number, abort: true });
      wake();
    };
    signal?.addEventListener("abort", abort, { once: true });
    try {
      for (;;) {
        if (signal?.aborted) throw new DOMException("The stream was ended by its reader.", "AbortError");
        const message = arrived.shift();
        if (message === undefined) {
          await new Promise((resolve) => (wake = resolve));
          continue;
        }
        if (message.error) throw message.error;
        yield* message.answer.chunks;
        if (message.answer.done) return;
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#worker.postMessage({ number, abort: true });
      this.#waiting.delete(number);
    }
  }

  #ask(message, buffers = []) {
    return new Promise((resolve, reject) => {
      const number = this.#send(message, ({ error, answer }) => {
        this.#waiting.delete(number);
        if (error) reject(error);
        else resolve(answer);
      }, buffers);
    });
  }

  #send(message, listener, buffers = []) {
    const number = ++this.#numbers;
    this.#waiting.set(number, listener);
    if (this.#broken) queueMicrotask(() => listener({ error: this.#broken }));
    else this.#worker.postMessage({ number, ...message }, buffers);
    return number;
  }

  #take({ number, status, answer, memory }) {
    this.#memory = memory ?? this.#memory;
    const error = status >= 400 ? new ServerError(status, answer.error.message) : null;
    this.#waiting.get(number)?.({ error, answer });
  }

  #break(message) {
    this.#broken = new ServerError(500, message);
    for (const listener of this.#waiting.values()) listener({ error: this.#broken });
  }
}
