// An engine that is a server, called over HTTP. Every failure is a ServerError (an error response) or an Unreachable
// (no response).

import { ServerError, Unreachable } from "./errors.js";
import { EventReader } from "./events.js";

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

export class HttpEngine {
  #key = "";
  #askForKey;

  // `askForKey(message)` is called when the server requires a key; it resolves to what the user typed.
  constructor(askForKey) {
    this.#askForKey = askForKey;
  }

  // What the page says about the engine beside the model; nothing, for a server.
  get facts() {
    return "";
  }

  async call(method, path, body) {
    return (await this.#request(method, path, body)).json();
  }

  async *stream(path, body, signal) {
    const answer = await this.#request("POST", path, body, signal);
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

  async #request(method, path, body, signal) {
    const keepalive = method === "DELETE"; // the request must complete even if the page is being closed
    const headers = {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (this.#key) headers.Authorization = `Bearer ${this.#key}`;
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
    this.#key = await this.#askForKey(message);
    if (!this.#key) throw new ServerError(401, message);
    return this.#request(method, path, body, signal);
  }
}
