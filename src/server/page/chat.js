// A conversation through /v1/chat/completions.

import { announce } from "./announce.js";
import * as api from "./api.js";
import { guarded } from "./banner.js";
import { sampling } from "./sampling.js";
import { Speed } from "./speed.js";

const element = (id) => document.getElementById(id);

export class Chat {
  constructor() {
    this.messages = [];
    this.stopper = null;
    this.frame = 0;
    element("say").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    element("message").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    element("chat").addEventListener("keydown", (event) => event.key === "Escape" && this.stopper?.abort());
    element("chat-stop").addEventListener("click", () => this.stopper?.abort());
    element("clear").addEventListener("click", () => {
      this.stopper?.abort();
      this.messages = [];
      element("messages").replaceChildren();
    });
  }

  #show(message) {
    const bubble = document.createElement("div");
    bubble.className = `message ${message.role}`;
    const who = document.createElement("b");
    who.textContent = message.role === "user" ? "You" : "Model";
    const text = document.createElement("p");
    text.textContent = message.content;
    bubble.append(who, text);
    element("messages").append(bubble);
    element("messages").scrollTop = element("messages").scrollHeight;
    return text;
  }

  async #send() {
    const content = element("message").value.trim();
    if (!content || this.stopper) return;
    element("message").value = "";
    this.messages.push({ role: "user", content });
    this.#show(this.messages.at(-1));
    const answer = { role: "assistant", content: "" };
    const asked = [...this.messages];
    this.messages.push(answer);
    await this.#receive(asked, answer, this.#show(answer));
  }

  async #receive(asked, answer, shown) {
    this.stopper = new AbortController();
    this.#showBusy();
    shown.parentElement.classList.add("writing");
    const speed = new Speed();
    await guarded(async () => {
      const body = { messages: asked, logprobs: true, ...sampling() }; // the number of log-probabilities is the number of tokens in a chunk
      for await (const chunk of api.stream("v1/chat/completions", body, this.stopper.signal)) {
        const piece = chunk.choices[0]?.delta?.content ?? "";
        answer.content += piece;
        speed.add(chunk.choices[0]?.logprobs?.content.length ?? 0);
        element("chat-speed").value = speed;
        this.#paint(answer, shown);
        announce(piece);
      }
    });
    shown.textContent = answer.content; // the last animation frame may still be pending
    shown.parentElement.classList.remove("writing");
    this.stopper = null;
    this.#showBusy();
  }

  // Updates once per animation frame, because a small model generates thousands of tokens per second.
  #paint(answer, shown) {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      shown.textContent = answer.content;
      element("messages").scrollTop = element("messages").scrollHeight;
    });
  }

  #showBusy() {
    element("send").disabled = this.stopper !== null;
    element("chat-stop").disabled = this.stopper === null;
  }
}
