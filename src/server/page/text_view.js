// The tokens of a branch as text, each word underlined by its novelty.

import { shownText, wordNovelty } from "./token.js";

const QUIET = 0.05; // fraction of the tokens below the colour range of the underline, and as many above it

const RECENT = 4000; // tokens that the range is taken from

export class TextView {
  // `choose(position)` is called when the user clicks on a token or moves along them by keys.
  constructor(container, choose) {
    this.container = container;
    this.spans = [];
    this.branch = null;
    this.position = 0;
    this.marked = 0; // tokens that are up to date, except for a change of position
    this.shared = 0;
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
      this.marked = 0;
      this.branch = branch;
      container.classList.toggle("wordwise", branch.wordwise);
      this.version = branch.version;
    }
    for (let i = this.spans.length; i < branch.tokens.length; ++i) this.#add(i);
    this.#mark(position, shared);
    if (position < branch.tokens.length) this.spans[position - 1]?.scrollIntoView({ block: "nearest" });
    else if (atEnd) container.scrollTop = container.scrollHeight;
  }

  // Updates only the tokens between the old and the new position.
  #mark(position, shared) {
    const same = shared === this.shared;
    const first = same ? Math.max(0, Math.min(position, this.position, this.marked) - 1) : 0;
    const last = same && this.marked === this.spans.length ? Math.max(position, this.position) : this.spans.length;
    for (let i = first; i < Math.min(last, this.spans.length); ++i) {
      const { classList } = this.spans[i];
      classList.toggle("current", i === position - 1);
      classList.toggle("ahead", i >= position);
      classList.toggle("shared", i < shared);
      classList.toggle("parting", shared > 0 && i === shared);
    }
    this.position = position;
    this.shared = shared;
    this.marked = this.spans.length;
  }

  // Sets the range of the colours and returns it, or null when no token has a novelty.
  setRange(branches) {
    const values = branches.flatMap((branch) => branch.tokens.slice(-RECENT).map(wordNovelty));
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
    this.container.append(span);
    this.spans.push(span);
    this.#underline(i);
  }

  // Updates the whole word of tokens[i], because the token may have changed the word's novelty.
  #underline(i) {
    const { tokens } = this.branch;
    const value = wordNovelty(tokens[i]);
    for (let j = i; j >= 0 && tokens[j].word === tokens[i].word; --j) {
      this.spans[j].classList.toggle("plain", value === null);
      this.spans[j].style.setProperty("--value", value ?? 0);
    }
  }
}
