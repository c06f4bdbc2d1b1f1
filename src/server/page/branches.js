// All branches of the page, and the current one.

import * as api from "./api.js";
import { Branch } from "./branch.js";

export class Branches extends EventTarget {
  all = [];
  current = null;
  #named = 0;
  #wordwise = null; // whether tokens are bytes, once it is known

  #nextName() {
    const n = this.#named++;
    return n < 26 ? String.fromCharCode(65 + n) : `B${n + 1}`;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  // Notifies listeners that the length of the current branch has changed.
  touch() {
    this.dispatchEvent(new Event("touch"));
  }

  show(branch) {
    this.current = branch;
    this.#changed();
  }

  async start() {
    this.#wordwise ??= (await api.get("v1/models")).data[0].tokenizer === "bytes";
    const branch = await Branch.start(this.#nextName(), this.#wordwise);
    this.all.push(branch);
    this.show(branch);
  }

  async fork(position) {
    const branch = await this.current.fork(position, this.#nextName());
    this.all.push(branch);
    this.show(branch);
  }

  async end(branch) {
    const at = this.all.indexOf(branch);
    this.all.splice(at, 1);
    if (this.all.length === 0) await this.start();
    else if (branch === this.current) this.show(this.all[Math.max(0, at - 1)]);
    else this.#changed();
    await branch.end();
  }

  // Deletes the sessions when the page is closed.
  leave() {
    for (const branch of this.all) branch.end();
  }

  async restore() {
    for (const branch of this.all) await branch.restore();
    this.#changed();
  }
}

// The length of the common prefix of two branches, in tokens.
export function sharedLength(left, right) {
  const most = Math.min(left.tokens.length, right.tokens.length);
  let shared = 0;
  while (shared < most && left.tokens[shared].id === right.tokens[shared].id) ++shared;
  return shared;
}
