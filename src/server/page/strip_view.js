// All slots in one strip, for screens where the memory does not fit beside the text: a row per layer, its heads side
// by side.

import { colors, drawCells, prepare } from "./colors.js";
import { levelsAt } from "./levels.js";

const TALL = 72; // CSS pixels of all layers together
const GAP = 3; // between two heads

export class StripView {
  constructor(canvas) {
    this.canvas = canvas;
  }

  draw(branch, position) {
    if (this.canvas.clientWidth === 0) return; // hidden: there is room for the full view
    const { layers, heads, slots } = branch.session;
    const row = Math.max(2, Math.min(12, Math.floor(TALL / layers)));
    const context = prepare(this.canvas, layers * row);
    const table = colors().write;
    const levels = levelsAt(branch, position);
    const width = (this.canvas.clientWidth - GAP * (heads - 1)) / heads;
    for (let head = 0; head < heads; ++head) {
      const cells = new Uint8Array(layers * slots);
      for (let layer = 0; layer < layers; ++layer) {
        const first = (layer * heads + head) * slots;
        cells.set(levels.subarray(first, first + slots), layer * slots);
      }
      drawCells(context, table, cells, slots, layers, head * (width + GAP), 0, width, layers * row);
    }
  }
}
