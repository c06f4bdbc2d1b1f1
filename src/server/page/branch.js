// A text that lives in a session of the server: its tokens, and what they did to the memory.

import * as api from "./api.js";
import { readToken } from "./token.js";

const STAND_OUT = 1.5;
const MOST_TRACED = 2 ** 28; // bytes of the writes of one prompt

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Branch {
  constructor(session, name) {
    this.session = session;
    this.name = name;
    this.tokens = [];
    this.busy = false;
    this.version = 0; // changes when tokens were taken away
    this.histogram = new Uint32Array(256); // of all writes
  }

  static async start(name) {
    return new Branch(await api.post("v1/sessions"), name);
  }

  get path() {
    return `v1/sessions/${this.session.id}`;
  }

  // Reads `prompt`, then writes on as `sampling` says. Calls `grown` with the new tokens whenever some arrive. When
  // `signal` is aborted, the session is set back to the tokens that were seen.
  async grow(prompt, sampling, grown, signal) {
    const body = { session: this.session.id, trace: true, ...sampling };
    this.busy = true;
    try {
      if (prompt && !this.#canTrace(prompt)) grown(await this.#append(prompt));
      else if (prompt) body.prompt = prompt;
      for await (const chunk of api.stream("v1/completions", body, signal)) {
        const tokens = (chunk.choices[0]?.tokens ?? []).map(readToken);
        tokens.forEach((token) => this.#add(token));
        if (tokens.length > 0) grown(tokens);
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      this.busy = false;
    }
    await this.#agree();
  }

  // A branch that goes on from `position` tokens of this one.
  async fork(position, name) {
    const branch = new Branch(await api.post(`${this.path}/fork`), name);
    this.tokens.forEach((token) => branch.#add(token));
    if (position < this.tokens.length) await branch.rewind(position);
    return branch;
  }

  // Forgets all but the first `position` tokens.
  async rewind(position) {
    this.session = await api.post(`${this.path}/rewind`, { position });
    this.#truncate(position);
  }

  // A new session with the same tokens, for when the server has lost the old one.
  async restore() {
    this.session = await api.post("v1/sessions");
    if (this.tokens.length === 0) return;
    await api.post(`${this.path}/append`, { tokens: this.tokens.map((token) => token.id) });
  }

  async end() {
    await api.remove(this.path).catch(() => {});
  }

  // The memory of a head behind `position` tokens. Earlier positions are visited by a fork that is set back.
  async memory(layer, head, position) {
    const query = `memory?layer=${layer}&head=${head}`;
    if (position >= this.tokens.length) return api.get(`${this.path}/${query}`);
    const { id } = await api.post(`${this.path}/fork`);
    try {
      await api.post(`v1/sessions/${id}/rewind`, { position });
      return await api.get(`v1/sessions/${id}/${query}`);
    } finally {
      await api.remove(`v1/sessions/${id}`);
    }
  }

  // The write that only one in two hundred slots exceeds, in 0..255.
  strongWrite() {
    let left = this.histogram.reduce((sum, count) => sum + count, 0) / 200;
    for (let value = 255; value > 4; --value) {
      left -= this.histogram[value];
      if (left < 0) return value;
    }
    return 4;
  }

  // How bright a write of 0..255 is shown, 0..255: strong ones stand out.
  brightness() {
    const strong = this.strongWrite();
    return Uint8Array.from({ length: 256 }, (_, write) => 255 * Math.min(1, write / strong) ** STAND_OUT);
  }

  // A transformer has nothing to trace, and the trace of a book would not fit into the page.
  #canTrace(text) {
    const { layers, heads, slots } = this.session;
    return slots > 0 && text.length * layers * heads * slots <= MOST_TRACED;
  }

  // Reads text without a trace.
  async #append(text) {
    const { tokens } = await api.post(`${this.path}/append`, { text });
    const read = tokens.map((token) => readToken({ ...token, prompt: true }));
    read.forEach((token) => this.#add(token));
    return read;
  }

  #add(token) {
    this.tokens.push(token);
    token.write?.forEach((value) => ++this.histogram[value]);
  }

  #truncate(position) {
    if (position >= this.tokens.length) return;
    const kept = this.tokens.slice(0, position);
    this.tokens = [];
    this.histogram.fill(0);
    kept.forEach((token) => this.#add(token));
    ++this.version;
  }

  // After a text that was stopped, the server may be a few tokens ahead of what arrived here.
  async #agree() {
    for (let attempt = 0; ; ++attempt) {
      try {
        this.session = await api.get(this.path);
        if (this.session.position > this.tokens.length) await this.rewind(this.tokens.length);
        this.#truncate(this.session.position);
        return;
      } catch (error) {
        // 409: the session is still being written to.
        if (error.status !== 409 || attempt === 20) throw error;
        await pause(100);
      }
    }
  }
}
