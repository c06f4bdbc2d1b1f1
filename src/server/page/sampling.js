// The sampling controls, shared by all views.

const panel = document.getElementById("sampling");
const inputs = [...panel.querySelectorAll("input")];

// The sampling options of a request; a field that is empty or out of range is left to the server's default.
export function sampling() {
  const values = {};
  for (const input of inputs) {
    if (input.value !== "" && input.checkValidity()) values[input.name] = Number(input.value);
  }
  return values;
}

function describe() {
  const { temperature, max_tokens: most, seed } = sampling();
  const parts = [];
  if (temperature !== undefined) parts.push(`temperature ${temperature}`);
  if (most !== undefined) parts.push(`${most} tokens`);
  if (seed !== undefined) parts.push(`seed ${seed}`);
  document.getElementById("sampling-facts").textContent = parts.join(", ");
}

// Moves the controls into a view.
export function placeSampling(view) {
  view.querySelector(".sampling-place").append(panel);
}

panel.addEventListener("input", describe);
describe();
