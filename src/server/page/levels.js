// The brightness of each slot: the write of the last token, or the faded write of an earlier one.

const FADE = 0.45; // fraction of the brightness that remains after each token
const TRAIL = 4;

// 0..255 for every slot of every head of every layer, after `position` tokens of the branch.
export function levelsAt(branch, position) {
  const { layers, heads, slots } = branch.session;
  const brightness = branch.brightness();
  const levels = new Uint8Array(layers * heads * slots);
  for (let age = 0, weight = 1; age < TRAIL && age < position; ++age, weight *= FADE) {
    const write = branch.tokens[position - 1 - age].write;
    if (!write) continue;
    for (let i = 0; i < levels.length; ++i) levels[i] = Math.max(levels[i], brightness[write[i]] * weight);
  }
  return levels;
}
