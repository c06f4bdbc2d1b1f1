// Calls to the model, through an engine: a server (http_engine.js) or a module in this page (wasm_engine.js). Both have
//   call(method, path, body)      the answer as JSON
//   stream(path, body, signal)    the chunks of a streamed answer; aborting `signal` ends it early
//   facts                         a text about the engine, may be empty
// and fail by the errors of errors.js.

export { ServerError, Unreachable } from "./errors.js";

let engine = null;

export function useEngine(chosen) {
  engine = chosen;
}

export function facts() {
  return engine.facts;
}

export async function get(path) {
  return engine.call("GET", path);
}

export async function post(path, body = {}) {
  return engine.call("POST", path, body);
}

export async function remove(path) {
  return engine.call("DELETE", path);
}

// The chunks of a streamed answer, one by one.
export function stream(path, body, signal) {
  return engine.stream(path, { ...body, stream: true }, signal);
}
