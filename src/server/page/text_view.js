// The tokens of a branch as text, each underlined by its novelty.

import { shownText } from "./token.js";

const QUIET = 0.05; // of the tokens are below the range of the underline's colours, and as many above

export class TextView {
  // `choose(position)` is called when the user clicks on a token or moves along them by keys.
  constructor(container, choose) {
    this.container = container;
    this.spans = [];
    this.branch = null;
    this.position = 0;
    container.addEventListener("click", (event) => {
      const span = event.target.closest("[data-index]");
      if (span) choose(Number(span.dataset.index) + 1);
    });
    container.addEventListener("keydown", (event) => {
      const length = this.branch?.tokens.length ?? 0;
      const to = { ArrowLeft: this.position - 1, ArrowRight: this.position + 1, Home: 1, End: length }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(Math.max(0, Math.min(length, to)));
    });
  }

  // `shared` tokens at the beginning are drawn paler.
  draw(branch, position, shared = 0) {
    const container = this.container;
    const atEnd = container.scrollHeight - container.scrollTop - container.clientHeight < 40;
    if (branch !== this.branch || branch.version !== this.version) {
      container.replaceChildren();
      this.spans = [];
      this.branch = branch;
      this.version = branch.version;
    }
    for (let i = this.spans.length; i < branch.tokens.length; ++i) this.#add(i);
    this.spans.forEach((span, i) => {
      span.classList.toggle("current", i === position - 1);
      span.classList.toggle("ahead", i >= position);
      span.classList.toggle("shared", i < shared);
      span.classList.toggle("parting", shared > 0 && i === shared);
    });
    this.position = position;
    if (position < branch.tokens.length) this.spans[position - 1]?.scrollIntoView({ block: "nearest" });
    else if (atEnd) container.scrollTop = container.scrollHeight;
  }

  // Sets the range of the colours and returns it, or null when no token has a novelty.
  setRange(branches) {
    const values = branches.flatMap((branch) => branch.tokens.map((token) => token.meanNovelty));
    const known = values.filter((value) => value !== null).sort((a, b) => a - b);
    if (known.length === 0) return null;
    const low = known[Math.floor(QUIET * (known.length - 1))];
    const high = Math.max(known[Math.ceil((1 - QUIET) * (known.length - 1))], low + 1e-3);
    this.container.style.setProperty("--low", low);
    this.container.style.setProperty("--span", high - low);
    return [low, high];
  }

  #add(i) {
    const token = this.branch.tokens[i];
    const span = document.createElement("span");
    span.dataset.index = i;
    span.textContent = shownText(this.branch.tokens, i);
    span.className = token.prompt ? "token prompt" : "token";
    if (span.textContent.includes("\n")) span.classList.add("break");
    if (token.meanNovelty === null) span.classList.add("plain");
    else span.style.setProperty("--value", token.meanNovelty);
    this.container.append(span);
    this.spans.push(span);
  }
}
