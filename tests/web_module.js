// Runs the module of a web page in Node.js, without a browser: node web_module.js RUNTIME MODEL reads a JSON list of
// requests from stdin, {path, body} each, and prints the list of their answers: the chunks of a stream, one list a request.
const fs = require("fs");
const path = require("path");
const { createHash } = require("crypto");

const [runtime, model] = process.argv.slice(2);

function inside(module, bytes) {
  const at = module._malloc(bytes.length + 1);
  module.HEAPU8.set(bytes, at);
  module.HEAPU8[at + bytes.length] = 0;
  return at;
}

// Calls a function of src/web/module.cc; bytes and texts are copied into the module's memory for the call.
function invoke(module, name, ...values) {
  const copies = values.map((value) => (typeof value === "number" ? null : inside(module, Buffer.from(value))));
  const status = module[`_lattice_web_${name}`](...values.map((value, i) => copies[i] ?? value));
  copies.forEach((at) => at !== null && module._free(at));
  const answer = module.UTF8ToString(module._lattice_web_answer());
  if (status !== 200) throw new Error(`${name}: ${answer}`);
  return JSON.parse(answer);
}

function chunksOf(module, request) {
  const { stream } = invoke(module, "stream", request.path, JSON.stringify(request.body));
  const chunks = [];
  for (let done = false; !done; ) {
    const step = invoke(module, "next", stream);
    chunks.push(...step.chunks);
    done = step.done;
  }
  module._lattice_web_close(stream);
  return chunks;
}

async function main() {
  const wasmBinary = fs.readFileSync(path.join(runtime, "lattice_web.wasm"));
  const module = await require(path.resolve(runtime, "lattice_web.js"))({ wasmBinary });
  for (const name of fs.readdirSync(model)) {
    const content = fs.readFileSync(path.join(model, name));
    invoke(module, "add", name, content, content.length);
    invoke(module, "check", name, createHash("sha256").update(content).digest("hex"));
  }
  invoke(module, "open", "tested");
  const requests = JSON.parse(fs.readFileSync(0));
  process.stdout.write(JSON.stringify(requests.map((request) => chunksOf(module, request))));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
