// Announces generated text to screen readers, in pieces of a useful size.

const PAUSE = 1200; // milliseconds

const live = document.getElementById("live");
let waiting = "";
let timer = 0;

function say() {
  live.textContent = waiting;
  waiting = "";
  timer = 0;
}

export function announce(text) {
  waiting += text;
  if (timer === 0) timer = setTimeout(say, PAUSE);
}
