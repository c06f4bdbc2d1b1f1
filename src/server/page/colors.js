// Colours of the canvases, taken from the style sheet, so that light and dark themes are defined in one place.

const STEPS = 256;

function channels(color) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

// A table of 256 colours, as packed RGBA bytes, through the stops in the custom property `name`.
function ramp(style, name) {
  const stops = style.getPropertyValue(name).split(",").map((stop) => channels(stop.trim()));
  const table = new Uint32Array(STEPS);
  for (let i = 0; i < STEPS; ++i) {
    const at = (i / (STEPS - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = stops[low].map((value, c) => Math.round(value + (stops[low + 1][c] - value) * (at - low)));
    table[i] = 0xff000000 | (mixed[2] << 16) | (mixed[1] << 8) | mixed[0];
  }
  return table;
}

let cached = null;

export function colors() {
  if (cached) return cached;
  const style = getComputedStyle(document.documentElement);
  cached = {
    write: ramp(style, "--write"),
    cosine: ramp(style, "--cosine"),
    ink: style.getPropertyValue("--ink").trim(),
    soft: style.getPropertyValue("--soft").trim(),
    accent: style.getPropertyValue("--accent").trim(),
    rule: style.getPropertyValue("--rule").trim(),
  };
  return cached;
}

// Calls `redraw` when the system changes between light and dark.
export function onThemeChange(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    cached = null;
    redraw();
  });
}

// Draws `indices`, rows x columns of 0..255, through a colour table onto `context`, scaled to the rectangle.
export function drawCells(context, table, indices, columns, rows, x, y, width, height) {
  const cells = new OffscreenCanvas(columns, rows);
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < indices.length; ++i) pixels[i] = table[indices[i]];
  cells.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, x, y, width, height);
}

// Gives the canvas `height` CSS pixels at the width it has, sharp on any screen, and returns its cleared context.
export function prepare(canvas, height) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
