// Two branches side by side, at the same position.

import { guarded } from "./banner.js";
import { sharedLength } from "./branches.js";
import { HeadsView } from "./heads_view.js";
import { sampling } from "./sampling.js";
import { Speed } from "./speed.js";
import { TextView } from "./text_view.js";
import { writeShare } from "./token.js";

const element = (id) => document.getElementById(id);

export class Compare {
  constructor(branches) {
    this.branches = branches;
    this.position = 0;
    this.stopper = null;
    this.frame = 0;
    this.sides = [...document.querySelectorAll("#compare .side")].map((side) => ({
      pick: side.querySelector("select"),
      facts: side.querySelector(".head .soft"),
      text: new TextView(side.querySelector(".text"), (position) => this.#moveTo(position)),
      heads: new HeadsView(side.querySelector("canvas")),
      branch: null,
    }));
    for (const side of this.sides) {
      side.pick.addEventListener("change", () => {
        side.branch = branches.all[Number(side.pick.value)];
        this.refresh();
      });
    }
    element("both-position").addEventListener("input", (event) => this.#moveTo(event.target.valueAsNumber));
    element("both-go").addEventListener("click", () => this.#go());
    element("both-stop").addEventListener("click", () => this.stopper?.abort());
    element("compare").addEventListener("keydown", (event) => event.key === "Escape" && this.stopper?.abort());
    branches.addEventListener("change", () => this.#choose());
  }

  // Called when the view is opened.
  open() {
    this.#choose();
    this.position = this.#length();
    this.refresh();
  }

  // Keeps the selected branches, or selects the current one and the one before it.
  #choose() {
    const all = this.branches.all;
    const current = all.indexOf(this.branches.current);
    const wanted = [Math.max(0, current === 0 ? 0 : current - 1), current === 0 ? Math.min(1, all.length - 1) : current];
    this.sides.forEach((side, i) => {
      if (!all.includes(side.branch) || this.sides[0].branch === this.sides[1].branch) side.branch = all[wanted[i]];
      side.pick.replaceChildren(...all.map((branch, n) => new Option(branch.name, n)));
      side.pick.value = all.indexOf(side.branch);
    });
    this.refresh();
  }

  #length() {
    return Math.max(...this.sides.map((side) => side.branch?.tokens.length ?? 0));
  }

  #moveTo(position) {
    this.position = position;
    this.refresh();
  }

  async #go() {
    if (this.stopper) return;
    this.stopper = new AbortController();
    this.position = this.#length();
    this.refresh();
    const chosen = new Set(this.sides.map((side) => side.branch));
    const speed = new Speed();
    const grown = (tokens) => {
      speed.add(tokens.length);
      element("both-speed").value = speed;
      this.#moveTo(this.#length());
    };
    await guarded(async () => {
      const both = [...chosen].map((branch) => branch.grow("", sampling(), grown, this.stopper.signal));
      const failed = (await Promise.allSettled(both)).find((result) => result.status === "rejected");
      if (failed) throw failed.reason;
    }, () => this.branches.restore());
    this.stopper = null;
    this.#moveTo(this.#length());
  }

  refresh() {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.frame = 0;
    const [left, right] = this.sides;
    if (element("compare").hidden || !left.branch) return;
    const same = left.branch === right.branch;
    const shared = same ? 0 : sharedLength(left.branch, right.branch);
    const length = this.#length();
    for (const side of this.sides) {
      const own = side.branch.tokens.length;
      const position = Math.min(this.position, own);
      side.text.draw(side.branch, position, shared);
      side.text.setRange([left.branch, right.branch]);
      side.facts.textContent = `${own} tokens`;
      if (side.branch.session.slots > 0) side.heads.draw(side.branch, position, null);
    }
    element("both-position").max = length;
    element("both-position").value = this.position;
    element("both-text").value = `${this.position} / ${length}`;
    element("both-go").disabled = this.stopper !== null || same || length === 0;
    element("both-stop").disabled = this.stopper === null;
    element("difference").textContent = this.#describe(same, shared);
  }

  #describe(same, shared) {
    if (same) return "There is one branch only. “Fork here”, under Memory, makes a second.";
    const [left, right] = this.sides.map((side) => side.branch);
    const at = this.position - 1;
    const writes = [left, right].map((branch) => branch.tokens[at]?.write).map((write) => write && Array.from(write, writeShare));
    const start = `${shared} tokens shared.`;
    if (at < shared || !writes[0] || !writes[1]) return start;
    let dot = 0;
    let norms = [0, 0];
    writes[0].forEach((value, i) => {
      dot += value * writes[1][i];
      norms = [norms[0] + value * value, norms[1] + writes[1][i] * writes[1][i]];
    });
    const cosine = dot / Math.sqrt(Math.max(norms[0] * norms[1], 1e-9));
    return `${start} At token ${this.position} they write to the same slots with a cosine of ${cosine.toFixed(2)}.`;
  }
}
