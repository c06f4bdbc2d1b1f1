// A branch: a text in a session of the server, with its tokens and what they did to the memory.

import * as api from "./api.js";
import { readToken } from "./token.js";

const STAND_OUT = 2;
const FAINT = 0.1; // this fraction of all writes, the smallest, is shown as nothing
const STRONGEST = 0.001; // this fraction of all writes, the largest, is shown at full strength
const MOST_TRACED = 2 ** 28; // bytes of the trace of one prompt

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Branch {
  // `wordwise`: tokens are bytes, too small to look at one by one.
  constructor(session, name, wordwise) {
    this.session = session;
    this.name = name;
    this.wordwise = wordwise;
    this.tokens = [];
    this.busy = false;
    this.version = 0; // changes when tokens are removed
    this.histogram = new Uint32Array(256); // of all writes
  }

  static async start(name, wordwise) {
    return new Branch(await api.post("v1/sessions"), name, wordwise);
  }

  get path() {
    return `v1/sessions/${this.session.id}`;
  }

  // Appends `prompt`, then generates with `sampling`. Calls `grown` with new tokens whenever some arrive. When
  // `signal` is aborted, the session is rewound to the tokens that have arrived.
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

  // Forks a branch from the first `position` tokens of this one.
  async fork(position, name) {
    const branch = new Branch(await api.post(`${this.path}/fork`), name, this.wordwise);
    this.tokens.forEach((token) => branch.#add({ ...token }));
    if (position < this.tokens.length) await branch.rewind(position);
    return branch;
  }

  // Rewinds to the first `position` tokens.
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

  // The memory of a head after `position` tokens. For earlier positions, a fork is rewound to them.
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

  // The range of writes, in 0..255, that the colours cover: quantiles of all writes, so that the typical writes of any
  // model are inside it.
  writeRange() {
    const low = this.#quantile(FAINT);
    return [low, Math.max(low + 1, this.#quantile(1 - STRONGEST))];
  }

  // The brightness, 0..255, of a write of 0..255; strong writes are emphasised.
  brightness() {
    const [low, high] = this.writeRange();
    const part = (write) => Math.min(1, Math.max(0, write - low) / (high - low));
    return Uint8Array.from({ length: 256 }, (_, write) => 255 * part(write) ** STAND_OUT);
  }

  // The quantile of all writes: the write below which `part` of them are.
  #quantile(part) {
    let left = part * this.histogram.reduce((sum, count) => sum + count, 0);
    let value = 0;
    while (value < 255 && (left -= this.histogram[value]) > 0) ++value;
    return value;
  }

  // A transformer has no memory to trace, and the trace of a book would not fit into the browser's memory.
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
    token.word = this.#wordOf(token);
    if (token.meanNovelty !== null) {
      token.word.sum += token.meanNovelty;
      ++token.word.known;
    }
    this.tokens.push(token);
    token.write?.forEach((value) => ++this.histogram[value]);
  }

  // Groups tokens into words: leading spaces and everything up to the next space. Unless `wordwise`, every token is a
  // word.
  #wordOf(token) {
    const before = this.tokens.at(-1);
    const begins = !before || !this.wordwise || (/^\s/.test(token.text) && !/^\s/.test(before.text));
    return begins ? { sum: 0, known: 0 } : before.word;
  }

  #truncate(position) {
    if (position >= this.tokens.length) return;
    const kept = this.tokens.slice(0, position);
    this.tokens = [];
    this.histogram.fill(0);
    kept.forEach((token) => this.#add(token));
    ++this.version;
  }

  // When generation is stopped, the server may be a few tokens ahead of what has arrived here.
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
