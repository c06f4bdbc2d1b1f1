// The worker that a model runs in: loads the module and the model's files, then answers the messages of wasm_engine.js.
// A message has a number, and so have the answers to it:
//   {start: {name, module, files}}   a file is {name, bytes, sha256} with its content (data) or its address (url)
//   {method, path, body}             one answer
//   {stream: path, body}             answers {chunks, done} until done, or until {abort: true}
// Answers have a status of HTTP, and the bytes of memory that the module has taken.

/* global createLattice */
if (typeof createLattice === "undefined") importScripts("lattice_web.js");

const SLICE = 12; // milliseconds of computing between two looks at new messages
const PIECE = 2 ** 20; // bytes of a file that are copied into the module at a time

const encoder = new TextEncoder();
let module = null;
const streams = new Map(); // numbers of the module's streams, by those of the messages
const turn = new MessageChannel(); // a message to ourselves comes behind those that wait already
let computing = false;

function answerOf(status) {
  return { status, answer: JSON.parse(module.UTF8ToString(module._lattice_web_answer())), memory: module.HEAPU8.length };
}

function send(number, answer) {
  postMessage({ number, ...answer });
}

function failure(message, status = 500) {
  return { status, answer: { error: { message } } };
}

// A text in the module's memory, for C: ended by a zero.
function textInside(text) {
  const bytes = encoder.encode(text);
  const at = module._malloc(bytes.length + 1);
  if (at === 0) throw new Error("there is not enough memory for the request");
  module.HEAPU8.set(bytes, at);
  module.HEAPU8[at + bytes.length] = 0;
  return at;
}

// Calls a function of the module (src/web/module.cc) with numbers and texts.
function invoke(name, ...values) {
  const texts = values.filter((value) => typeof value === "string").map(textInside);
  let next = 0;
  const passed = values.map((value) => (typeof value === "string" ? texts[next++] : value));
  const status = module[`_lattice_web_${name}`](...passed);
  texts.forEach((at) => module._free(at));
  return answerOf(status);
}

// Like invoke, but an error is thrown.
function demand(name, ...values) {
  const answer = invoke(name, ...values);
  if (answer.status !== 200) throw new Error(answer.answer.error.message);
}

// The pieces of a file, whatever it comes from.
async function* pieces(file) {
  if (file.data) {
    yield new Uint8Array(file.data);
    return;
  }
  const response = await fetch(file.url).catch(() => null);
  if (!response?.ok) throw new Error(`${file.name} cannot be loaded${response ? ` (status ${response.status})` : ""}; it belongs beside this page.`);
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

async function whole(file, arrived) {
  const parts = [];
  for await (const piece of pieces(file)) {
    parts.push(piece);
    arrived(piece.length);
  }
  return new Blob(parts).arrayBuffer();
}

async function startModule(wasmBinary, name) {
  // Memory is asked for when the module starts, so that a lack of it can be told from a damaged file.
  const compiled = await WebAssembly.compile(wasmBinary).catch((error) => {
    throw new Error(`${name} is damaged, or not for this browser: ${error.message}`);
  });
  return createLattice({
    instantiateWasm(imports, ready) {
      WebAssembly.instantiate(compiled, imports).then(ready, (error) => startFailed(error));
      return {};
    },
  });
}

let startFailed = () => {};

function addFile(name, content, buffer) {
  for (let at = 0; at < content.length; at += PIECE) {
    const piece = content.subarray(at, at + PIECE);
    module.HEAPU8.set(piece, buffer);
    demand("add", name, buffer, piece.length);
  }
}

async function start({ name, module: wasm, files }) {
  const total = [wasm, ...files].reduce((sum, file) => sum + file.bytes, 0);
  let bytes = 0;
  const arrived = (count) => {
    bytes += count;
    postMessage({ progress: Math.min(1, bytes / total) });
  };
  const binary = await whole(wasm, arrived);
  module = await new Promise((resolve, reject) => {
    startFailed = (error) => reject(new Error(`This browser does not start the model's module; it may give the page too little memory (${error.message}).`));
    startModule(binary, wasm.name).then(resolve, reject);
  });
  const buffer = module._malloc(PIECE);
  for (const file of files) {
    for await (const piece of pieces(file)) {
      addFile(file.name, piece, buffer);
      arrived(piece.length);
    }
    demand("check", file.name, file.sha256);
  }
  module._free(buffer);
  demand("open", name);
  return { status: 200, answer: {}, memory: module.HEAPU8.length };
}

function close(number) {
  if (!streams.has(number)) return;
  module._lattice_web_close(streams.get(number));
  streams.delete(number);
}

// One step of a stream.
function advance(number) {
  const answer = invoke("next", streams.get(number));
  const ended = answer.status !== 200 || answer.answer.done;
  if (ended) close(number);
  if (ended || answer.answer.chunks.length > 0) send(number, answer);
}

// All streams in turn, for a moment, so that messages are seen while texts are written.
function compute() {
  const end = performance.now() + SLICE;
  while (streams.size > 0 && performance.now() < end) {
    for (const number of [...streams.keys()]) advance(number);
  }
  computing = streams.size > 0;
  if (computing) turn.port2.postMessage(null);
}
turn.port1.onmessage = compute;

function open(number, path, body) {
  const answer = invoke("stream", `/${path}`, body);
  if (answer.status !== 200) return send(number, answer);
  streams.set(number, answer.answer.stream);
  if (computing) return;
  computing = true;
  turn.port2.postMessage(null);
}

function handle({ number, method, path, body, stream, abort, start: files }) {
  if (files) return start(files).then((answer) => send(number, answer), (error) => send(number, failure(error.message)));
  if (abort) return close(number);
  if (stream) return open(number, stream, body);
  return send(number, invoke("call", method, `/${path}`, body));
}

addEventListener("message", ({ data }) => {
  try {
    handle(data);
  } catch (error) {
    send(data.number, failure(`The model's module has stopped: ${error.message}. Load the page again.`));
  }
});
