// Properties of the page's reader of streamed answers, in node, with a fetch that gives bytes cut anywhere. Exits with 1
// and the seed of the first case that fails. Arguments: the path of http_engine.js and the number of cases.
import { pathToFileURL } from "node:url";

const [path, cases] = process.argv.slice(2);
const { HttpEngine } = await import(pathToFileURL(path));
const { ServerError, Unreachable } = await import(new URL("errors.js", pathToFileURL(path)));
const engine = new HttpEngine(async () => "");

// A generator of numbers below n (mulberry32).
function random(seed) {
  return (n) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

function pick(below, list) {
  return list[below(list.length)];
}

function randomText(below) {
  const parts = ["a", " ", "\n", "\r", "\r\n", "data: ", "é", "漢", "🙂", '"', "\\", "[DONE]", "\u2028", "\0", ":"];
  return Array.from({ length: below(12) }, () => pick(below, parts)).join("");
}

// Gives the bytes in pieces of random sizes, empty ones included.
function serveBytes(bytes, below) {
  globalThis.fetch = async () => new Response(new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length;) {
        const size = pick(below, [0, 1, 1, 2, 3, 7, 50, 1000]);
        controller.enqueue(bytes.slice(at, at + size));
        at += size;
      }
      controller.close();
    },
  }));
}

async function readAll() {
  const chunks = [];
  for await (const chunk of engine.stream("v1/completions", {})) chunks.push(chunk);
  return chunks;
}

// Whatever the framing that the standard allows and however it is cut, the chunks that were sent arrive.
async function chunksArrive(below) {
  const end = pick(below, ["\n", "\r\n", "\r"]);
  const sent = Array.from({ length: below(6) }, () => ({ choices: [{ text: randomText(below) }], n: below(1000) }));
  const event = (data) => {
    const before = pick(below, ["", "", `: a comment${end}`, `event: message${end}`, `id: 7${end}retry: 10${end}`]);
    return `${before}data:${pick(below, ["", " "])}${data}${end}${end}`;
  };
  const silence = pick(below, ["", `: ping${end}${end}`, `${end}${end}`]);
  const text = silence + sent.map((chunk) => event(JSON.stringify(chunk)) + silence).join("") + event("[DONE]") + "rest";
  serveBytes(new TextEncoder().encode(text), below);
  const got = await readAll();
  if (JSON.stringify(got) !== JSON.stringify(sent)) throw new Error(`sent ${JSON.stringify(sent)}, got ${JSON.stringify(got)}`);
}

// Any bytes end in an answer, or in one of the two errors that the page knows how to show.
async function garbageIsAnError(below) {
  const parts = ["data: ", "data:", "null", "7", '"x"', "{}", "[]", '{"error":{}}', '{"error":{"message":"m"}}', "{", "\n\n", "\r\n\r\n",
    "\n", "\r", ":", "data", "[DONE]", "\u00ff", "é"];
  const bytes = below(2)
    ? new TextEncoder().encode(Array.from({ length: below(20) }, () => pick(below, parts)).join(""))
    : Uint8Array.from({ length: below(60) }, () => below(256));
  serveBytes(bytes, below);
  try {
    for (const chunk of await readAll()) {
      if (typeof chunk !== "object" || chunk === null) throw new Error(`${chunk} is no chunk`);
    }
  } catch (error) {
    if (!(error instanceof ServerError || error instanceof Unreachable)) throw error;
    if (typeof error.message !== "string" || error.message === "" || error.message === "undefined") throw new Error("an error without a message");
  }
}

// A long event in many pieces takes time in proportion to its length: four times as much takes at most eight times as
// long, with room for noise; the least of three runs.
async function timeIsLinear() {
  const seconds = async (pieces) => {
    let least = Infinity;
    for (let run = 0; run < 3; ++run) {
      const piece = new TextEncoder().encode("x".repeat(1000));
      globalThis.fetch = async () => new Response(new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('data: {"text": "'));
          for (let i = 0; i < pieces; ++i) controller.enqueue(piece);
          controller.enqueue(new TextEncoder().encode('"}\n\ndata: [DONE]\n\n'));
          controller.close();
        },
      }));
      const began = process.cpuUsage();
      await readAll();
      const { user, system } = process.cpuUsage(began);
      least = Math.min(least, (user + system) / 1e6);
    }
    return least;
  };
  const half = await seconds(4000), whole = await seconds(16000);
  if (whole > 0.5 + 8 * half) throw new Error(`4 MB took ${half} s, 16 MB ${whole} s`);
}

for (let seed = 0; seed < Number(cases); ++seed) {
  for (const property of [chunksArrive, garbageIsAnError]) {
    try {
      await property(random(seed));
    } catch (error) {
      console.error(`${property.name}, seed ${seed}: ${error.stack}`);
      process.exit(1);
    }
  }
}
await timeIsLinear();
console.log(`${cases} cases of each property`);
