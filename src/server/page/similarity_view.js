// Cosine of every two slots of a head, and beside it the length of each slot.

import { colors, drawCells, prepare } from "./colors.js";

const BARS = 26;
const LARGEST = 300;

export class SimilarityView {
  constructor(canvas) {
    this.canvas = canvas;
  }

  clear() {
    prepare(this.canvas, Math.min(LARGEST, this.canvas.clientWidth) - BARS);
  }

  // `memory` is the response of GET /v1/sessions/{id}/memory?layer=&head=.
  draw(memory) {
    const size = Math.min(LARGEST, this.canvas.clientWidth) - BARS;
    const context = prepare(this.canvas, size);
    const palette = colors();
    const slots = memory.slots;
    const cells = new Uint8Array(slots * slots);
    memory.similarity.forEach((row, i) => row.forEach((cosine, j) => {
      cells[i * slots + j] = Math.round(Math.min(255, Math.max(0, (cosine + 1) * 127.5)));
    }));
    drawCells(context, palette.cosine, cells, slots, slots, 0, 0, size, size);
    const longest = Math.max(...memory.norms, 1e-9);
    context.fillStyle = palette.soft;
    memory.norms.forEach((norm, i) => {
      context.fillRect(size + 5, (i * size) / slots, ((BARS - 6) * norm) / longest, Math.max(0.75, size / slots - 1));
    });
  }
}

// Mean |cosine| of two different slots.
export function meanSimilarity({ similarity, slots }) {
  let sum = 0;
  similarity.forEach((row, i) => row.forEach((cosine, j) => {
    if (i !== j) sum += Math.abs(cosine);
  }));
  return slots > 1 ? sum / (slots * (slots - 1)) : 0;
}
