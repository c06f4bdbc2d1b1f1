// Tokens as the views want them.

const PARTIAL = "bytes:";

function bytesOf(text) {
  return Uint8Array.from(text.slice(PARTIAL.length).matchAll(/\\x(..)/g), (match) => parseInt(match[1], 16));
}

function unpacked(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

// The part of a slot's length that a byte of `write` stands for: its scale is logarithmic.
export function writeShare(byte) {
  return 10 ** ((4 * byte) / 255 - 3);
}

// What the server sends for a token, unpacked: `write` has a byte for every slot of every head of every layer (see
// writeShare); `novelty` has a number for every head of every layer, and is null for memories that have none (only
// Lattice projects its updates). Both are null where the model has no memory.
export function readToken(sent) {
  const figures = sent.memory?.novelty.flat() ?? [null];
  const novelty = figures[0] === null ? null : figures;
  return {
    id: sent.id,
    text: sent.text,
    prompt: sent.prompt === true,
    write: sent.memory ? unpacked(sent.memory.write) : null,
    novelty,
    word: null, // what the token shares with the others of its word
    meanNovelty: novelty ? novelty.reduce((sum, value) => sum + value, 0) / novelty.length : null,
  };
}

// The novelty that the token's word is underlined by, or null.
export function wordNovelty({ word }) {
  return word.known > 0 ? word.sum / word.known : null;
}

// The text to show for tokens[i]. A character that is split among tokens is shown with the last of them.
export function shownText(tokens, i) {
  if (!tokens[i].text.startsWith(PARTIAL)) return tokens[i].text;
  let first = i;
  while (first > 0 && bytesOf(tokens[first].text)[0] < 0xc0 && tokens[first - 1].text.startsWith(PARTIAL)) --first;
  const decoder = new TextDecoder();
  let shown = "";
  for (let j = first; j <= i; ++j) shown = decoder.decode(bytesOf(tokens[j].text), { stream: true });
  return shown;
}
