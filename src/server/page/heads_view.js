// All slots of all heads: a row of tiles per layer, a tile per head, a square per slot.

import { colors, drawCells, prepare } from "./colors.js";
import { levelsAt } from "./levels.js";

const LABEL = 34; // space for the axis name and its numbers
const NAME = 9; // from the edge to the middle of the name
const GAP = 6;
const ROOMY = 6; // CSS pixels of a square; larger ones must fit into TALL together
const TALL = 296;

export class HeadsView {
  // `choose(layer, head)` is called when the user picks a tile; without it the view is read-only.
  constructor(canvas, choose) {
    this.canvas = canvas;
    this.shape = null;
    if (!choose) return;
    canvas.addEventListener("click", (event) => {
      const picked = this.#tileAt(event.offsetX, event.offsetY);
      if (picked) choose(...picked);
    });
    canvas.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!move || !this.shape) return;
      event.preventDefault();
      const { layers, heads } = this.shape;
      const [layer, head] = this.chosen;
      this.chosen = [(layer + move[0] + layers) % layers, (head + move[1] + heads) % heads];
      choose(...this.chosen);
    });
  }

  // Shows the memory after `position` tokens of the branch; the tile of `chosen`, [layer, head], is marked.
  draw(branch, position, chosen) {
    this.shape = this.#measure(branch.session);
    this.chosen = chosen;
    const { layers, heads, slots, columns, rows, cell, left, tileWidth, tileHeight } = this.shape;
    const context = prepare(this.canvas, LABEL + layers * (tileHeight + GAP));
    const palette = colors();
    const levels = levelsAt(branch, position);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = palette.soft;
    this.#nameAxes(context);
    for (let layer = 0; layer < layers; ++layer) {
      const y = LABEL + layer * (tileHeight + GAP);
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(layer + 1, left - 7, y + tileHeight / 2);
      for (let head = 0; head < heads; ++head) {
        const x = left + head * (tileWidth + GAP);
        const tile = new Uint8Array(columns * rows);
        const first = (layer * heads + head) * slots;
        tile.set(levels.subarray(first, first + slots));
        drawCells(context, palette.write, tile, columns, rows, x, y, columns * cell, rows * cell);
        context.strokeStyle = palette.rule;
        context.lineWidth = 1;
        context.strokeRect(x - 0.5, y - 0.5, tileWidth + 1, tileHeight + 1);
        if (layer === 0) {
          context.textAlign = "center";
          context.fillText(head + 1, x + tileWidth / 2, LABEL - 9);
        }
      }
    }
    if (chosen) this.#mark(context, palette.accent, ...chosen);
  }

  #nameAxes(context) {
    const { layers, heads, left, tileWidth, tileHeight } = this.shape;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText("head", left + (heads * (tileWidth + GAP) - GAP) / 2, NAME);
    context.save();
    context.translate(left - LABEL + NAME, LABEL + (layers * (tileHeight + GAP) - GAP) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText("layer", 0, 0);
    context.restore();
  }

  #mark(context, color, layer, head) {
    const { left, tileWidth, tileHeight } = this.shape;
    context.strokeStyle = color;
    context.lineWidth = 2;
    const x = left + head * (tileWidth + GAP);
    const y = LABEL + layer * (tileHeight + GAP);
    context.strokeRect(x - 2, y - 2, tileWidth + 4, tileHeight + 4);
  }

  #measure({ layers, heads, slots }) {
    const columns = Math.ceil(Math.sqrt(slots));
    const rows = Math.ceil(slots / columns);
    const wide = ((this.canvas.clientWidth - LABEL - 4) / heads - GAP) / columns;
    const tall = (TALL / layers - GAP) / rows;
    const cell = Math.max(0.5, Math.floor(2 * Math.min(wide, Math.max(ROOMY, tall))) / 2);
    const tileWidth = columns * cell;
    const left = Math.max(LABEL, (this.canvas.clientWidth - heads * (tileWidth + GAP)) / 2);
    return { layers, heads, slots, columns, rows, cell, left, tileWidth, tileHeight: rows * cell };
  }

  #tileAt(x, y) {
    if (!this.shape) return null;
    const { layers, heads, left, tileWidth, tileHeight } = this.shape;
    const head = Math.floor((x - left) / (tileWidth + GAP));
    const layer = Math.floor((y - LABEL) / (tileHeight + GAP));
    return head >= 0 && head < heads && layer >= 0 && layer < layers ? [layer, head] : null;
  }
}
