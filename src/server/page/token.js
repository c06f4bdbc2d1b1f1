// Tokens in the form that the views use.

const PARTIAL = "bytes:";

function bytesOf(text) {
  return Uint8Array.from(text.slice(PARTIAL.length).matchAll(/\\x(..)/g), (match) => parseInt(match[1], 16));
}

function unpacked(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

// The fraction of a slot's length that a byte of `write` encodes, on a logarithmic scale.
export function writeShare(byte) {
  return 10 ** ((4 * byte) / 255 - 3);
}

// Decodes a token of the server's response: `write` has a byte for every slot of every head of every layer (see
// writeShare); `novelty` has a number for every head of every layer, and is null for memories without novelty (only
// Lattice projects its updates). Both are null if the model has no memory.
export function readToken(sent) {
  const figures = sent.memory?.novelty.flat() ?? [null];
  const novelty = figures[0] === null ? null : figures;
  return {
    id: sent.id,
    text: sent.text,
    prompt: sent.prompt === true,
    write: sent.memory ? unpacked(sent.memory.write) : null,
    novelty,
    word: null, // state shared by all tokens of the word
    meanNovelty: novelty ? novelty.reduce((sum, value) => sum + value, 0) / novelty.length : null,
  };
}

// The novelty of the token's word, which is underlined by it, or null.
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
