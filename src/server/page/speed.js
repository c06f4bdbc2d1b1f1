// Measures how fast the model generates.

export class Speed {
  #began = 0;
  #last = 0;
  #count = 0;

  // Adds `count` tokens. The first ones only start the clock, so that prefill is not counted.
  add(count, now = performance.now()) {
    if (count === 0) return;
    if (this.#began === 0) this.#began = now;
    else this.#count += count;
    this.#last = now;
  }

  toString() {
    const seconds = (this.#last - this.#began) / 1000;
    if (this.#count === 0 || seconds === 0) return "";
    const rate = this.#count / seconds;
    return `${rate < 10 ? rate.toFixed(1) : Math.round(rate)} tokens/s`;
  }
}
