// The slots of one head over time: a row per slot, a column per token.

import { colors, drawCells, prepare } from "./colors.js";

const HEIGHT = 192;
const NARROWEST = 3; // CSS pixels of a column
const WIDEST = 12;

export class RasterView {
  // `choose(position)` is called when the user clicks on a column.
  constructor(canvas, choose) {
    this.canvas = canvas;
    canvas.addEventListener("click", (event) => {
      if (!this.width) return;
      const column = Math.floor(event.offsetX / this.width);
      if (column < this.count) choose(this.first + column + 1);
    });
  }

  draw(branch, position, [layer, head]) {
    const context = prepare(this.canvas, HEIGHT);
    const { heads, slots } = branch.session;
    const room = this.canvas.clientWidth;
    const length = branch.tokens.length;
    this.width = Math.min(WIDEST, Math.max(NARROWEST, room / Math.max(length, 1)));
    const most = Math.floor(room / this.width);
    // Shows the end of the text, or the part around the position if that is further back.
    this.first = Math.max(0, Math.min(length - most, position - Math.ceil(most / 2)));
    this.count = Math.min(most, length - this.first);
    const palette = colors();
    if (this.count === 0) return;
    const brightness = branch.brightness();
    const cells = new Uint8Array(this.count * slots);
    const offset = (layer * heads + head) * slots;
    for (let t = 0; t < this.count; ++t) {
      const write = branch.tokens[this.first + t].write;
      if (!write) continue;
      for (let slot = 0; slot < slots; ++slot) {
        cells[slot * this.count + t] = brightness[write[offset + slot]];
      }
    }
    drawCells(context, palette.write, cells, this.count, slots, 0, 0, this.count * this.width, HEIGHT);
    const column = position - 1 - this.first;
    if (column < 0 || column >= this.count) return;
    context.strokeStyle = palette.accent;
    context.lineWidth = 2;
    context.strokeRect(column * this.width, 1, Math.max(this.width, 3), HEIGHT - 2);
  }
}
