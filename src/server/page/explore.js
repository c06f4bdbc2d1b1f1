// The view of one branch: its text, and its memory at any position of it.

import { announce } from "./announce.js";
import { attempt, guarded } from "./banner.js";
import { HeadsView } from "./heads_view.js";
import { RasterView } from "./raster_view.js";
import { sampling } from "./sampling.js";
import { meanSimilarity, SimilarityView } from "./similarity_view.js";
import { Speed } from "./speed.js";
import { StripView } from "./strip_view.js";
import { TextView } from "./text_view.js";
import { shownText, wordNovelty, writeShare } from "./token.js";

const SETTLED = 180; // milliseconds without a change before the server is asked for a head's memory

const element = (id) => document.getElementById(id);
const percent = (share) => `${share < 0.0995 ? (100 * share).toFixed(1) : Math.round(100 * share)} %`;
const visible = (text) => text.replace(/\n/g, "↵").replace(/ /g, "␣") || "part of a character";

export class Explore {
  constructor(branches) {
    this.branches = branches;
    this.position = 0;
    this.chosen = [0, 0];
    this.stopper = null;
    this.frame = 0;
    this.timer = 0;
    this.asked = 0;
    const move = (position) => this.moveTo(position);
    const choose = (layer, head) => this.choose(layer, head);
    this.text = new TextView(element("text"), move);
    this.heads = new HeadsView(element("heads"), choose);
    this.raster = new RasterView(element("raster"), move);
    this.strip = new StripView(element("strip"));
    this.similarity = new SimilarityView(element("similarity"));
    this.#listen();
  }

  #listen() {
    element("position").addEventListener("input", (event) => this.moveTo(event.target.valueAsNumber));
    for (const id of ["layer", "head"]) {
      element(id).addEventListener("change", () => this.choose(Number(element("layer").value), Number(element("head").value)));
    }
    element("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.go();
    });
    element("prompt").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.go();
    });
    element("explore").addEventListener("keydown", (event) => event.key === "Escape" && this.stopper?.abort());
    element("stop").addEventListener("click", () => this.stopper?.abort());
    element("rewind").addEventListener("click", () => this.#change(() => this.branch.rewind(this.position)));
    element("fork").addEventListener("click", () => this.#change(() => this.branches.fork(this.position)));
    element("fresh").addEventListener("click", () => this.#change(() => this.branches.start()));
    for (const example of document.querySelectorAll("#start button")) {
      example.addEventListener("click", () => {
        element("prompt").value = example.textContent;
        this.go();
      });
    }
    this.branches.addEventListener("change", () => this.#switched());
  }

  get branch() {
    return this.branches.current;
  }

  // An action on the session: one at a time, and not while it writes.
  async #change(action) {
    if (this.stopper) return;
    await guarded(action, () => this.branches.restore());
    this.position = Math.min(this.position, this.branch.tokens.length);
    this.branches.touch();
    this.refresh();
  }

  #switched() {
    const { layers, heads } = this.branch.session;
    for (const [id, count, chosen] of [["layer", layers, this.chosen[0]], ["head", heads, this.chosen[1]]]) {
      const options = Array.from({ length: count }, (_, i) => new Option(i + 1, i));
      element(id).replaceChildren(...options);
      element(id).value = chosen;
    }
    this.position = this.branch.tokens.length;
    this.#listBranches();
    this.refresh();
  }

  #listBranches() {
    const buttons = this.branches.all.map((branch) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = branch.name;
      button.setAttribute("aria-pressed", branch === this.branch);
      button.setAttribute("aria-label", `Branch ${branch.name}`);
      button.addEventListener("click", () => !this.stopper && this.branches.show(branch));
      return button;
    });
    element("branches").replaceChildren(...buttons);
    if (this.branches.all.length < 2) return;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "quiet";
    close.textContent = `Close ${this.branch.name}`;
    close.addEventListener("click", () => this.#change(() => this.branches.end(this.branch)));
    element("branches").append(close);
  }

  moveTo(position) {
    this.position = position;
    this.refresh();
  }

  choose(layer, head) {
    this.chosen = [layer, head];
    element("layer").value = layer;
    element("head").value = head;
    this.refresh();
  }

  async go() {
    if (this.stopper) return;
    const branch = this.branch;
    const prompt = element("prompt").value;
    const speed = new Speed();
    const grown = (tokens) => {
      speed.add(tokens.filter((token) => !token.prompt).length);
      element("speed").value = speed;
      this.#grown(branch, tokens);
    };
    this.stopper = new AbortController();
    this.position = branch.tokens.length;
    this.#showBusy();
    element("text-title").scrollIntoView({ block: "nearest" });
    await guarded(() => branch.grow(prompt, sampling(), grown, this.stopper.signal), () => this.branches.restore());
    this.stopper = null;
    this.position = Math.min(this.position, branch.tokens.length);
    this.#showBusy();
    this.branches.touch();
    this.refresh();
  }

  #grown(branch, tokens) {
    const first = branch.tokens.length - tokens.length;
    // A user who looks at an earlier position stays there.
    if (this.position >= first) this.position = branch.tokens.length;
    if (tokens.some((token) => token.prompt)) element("prompt").value = "";
    announce(tokens.map((token, i) => (token.prompt ? "" : shownText(branch.tokens, first + i))).join(""));
    this.refresh();
  }

  #showBusy() {
    const busy = this.stopper !== null;
    element("go").disabled = busy;
    element("stop").disabled = !busy;
    element("fresh").disabled = busy;
    element("text").setAttribute("aria-busy", busy);
  }

  refresh() {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.#draw());
    clearTimeout(this.timer);
    if (!this.stopper) this.timer = setTimeout(() => this.#askForMemory(), SETTLED);
  }

  #draw() {
    this.frame = 0;
    if (element("explore").hidden || !this.branch) return;
    const { branch, position } = this;
    const length = branch.tokens.length;
    document.body.classList.toggle("unread", length === 0);
    element("start").hidden = length > 0;
    element("text").hidden = length === 0;
    element("unit").value = branch.wordwise ? "word" : "token";
    this.text.draw(branch, position);
    const range = this.text.setRange([branch]);
    element("novelty-low").value = range ? range[0].toFixed(2) : "";
    element("novelty-high").value = range ? range[1].toFixed(2) : "";
    const slider = element("position");
    slider.max = length;
    slider.value = position;
    slider.setAttribute("aria-valuetext", `behind token ${position} of ${length}`);
    element("position-text").value = `${position} / ${length}`;
    element("rewind").disabled = this.stopper !== null || position >= length;
    element("fork").disabled = this.stopper !== null || length === 0;
    this.#describeToken(branch.tokens[position - 1]);
    if (branch.session.slots === 0) return;
    [element("write-low").value, element("write-high").value] = branch.writeRange().map((byte) => percent(writeShare(byte)));
    const [layer, head] = this.chosen;
    element("heads").setAttribute("aria-label", `Slots of every layer and head; layer ${layer + 1}, head ${head + 1} is chosen, the arrow keys choose another`);
    this.heads.draw(branch, position, this.chosen);
    this.raster.draw(branch, position, this.chosen);
    this.strip.draw(branch, position);
  }

  #describeToken(token) {
    const facts = element("token-facts");
    if (!token) {
      facts.textContent = this.branch.tokens.length === 0 ? "Nothing read yet: the memory is as training left it." : "Before the first token.";
      return;
    }
    const [layer, head] = this.chosen;
    const own = token.novelty?.[layer * this.branch.session.heads + head];
    const shown = visible(shownText(this.branch.tokens, this.position - 1));
    facts.textContent = token.novelty === null ? `“${shown}”`
      : `“${shown}”: novelty ${token.meanNovelty.toFixed(2)}, in the chosen head ${own.toFixed(2)}`
        + (token.word.known > 1 ? `; its word ${wordNovelty(token).toFixed(2)}` : "");
  }

  async #askForMemory() {
    const { branch, position, chosen } = this;
    if (!branch || branch.session.slots === 0 || branch.busy || element("explore").hidden) return;
    const asked = ++this.asked;
    await attempt(async () => {
      const memory = await branch.memory(...chosen, position);
      if (asked !== this.asked) return;
      this.memory = memory;
      this.similarity.draw(memory);
      element("rank").textContent = `effective rank ${memory.effective_rank.toFixed(1)} of ${memory.slots}, `
        + `mean |cosine| ${meanSimilarity(memory).toFixed(2)}; the bars are the slots' lengths`;
    }, () => this.branches.restore());
  }
}
