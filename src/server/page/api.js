// Calls to the server. Every failure is a ServerError (an error response) or an Unreachable (no response, or half of one).

import { EventReader } from "./events.js";

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Unreachable extends Error {}

let key = "";
let askForKey = async () => "";

// `ask` is called when the server requires a key; it resolves to what the user typed.
export function onKeyWanted(ask) {
  askForKey = ask;
}

async function request(method, path, body, signal) {
  const keepalive = method === "DELETE"; // the request must complete even if the page is being closed
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers.Authorization = `Bearer ${key}`;
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, keepalive, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("The server does not answer.");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const message = problem.error?.message ?? `The server answered ${answer.status}.`;
  if (answer.status !== 401) throw new ServerError(answer.status, message);
  key = await askForKey(message);
  if (!key) throw new ServerError(401, message);
  return request(method, path, body, signal);
}

export async function get(path) {
  return (await request("GET", path)).json();
}

export async function post(path, body = {}) {
  return (await request("POST", path, body)).json();
}

export async function remove(path) {
  return (await request("DELETE", path)).json();
}

// What an event says. What is no JSON object, nobody meant to send.
function chunkOf(data) {
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    chunk = null;
  }
  if (typeof chunk !== "object" || chunk === null) throw new Unreachable("The connection carried something that is no answer.");
  if (chunk.error) throw new ServerError(500, chunk.error.message ?? "The server failed.");
  return chunk;
}

// The chunks of a streamed answer, one by one. Ends when the server is done; aborting `signal` ends it early.
export async function* stream(path, body, signal) {
  const answer = await request("POST", path, { ...body, stream: true }, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Unreachable("The connection broke in the middle of the text.");
    });
    if (done) throw new Unreachable("The connection ended in the middle of the text.");
    for (const data of events.read(value)) {
      if (data === "[DONE]") return;
      yield chunkOf(data);
    }
  }
}
