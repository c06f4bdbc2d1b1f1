// The entry point: assembles the page.

import { facts, useEngine } from "./api.js";
import { attempt, guarded, watchServer } from "./banner.js";
import { Branches } from "./branches.js";
import { Chat } from "./chat.js";
import { onThemeChange } from "./colors.js";
import { Compare } from "./compare.js";
import { Explore } from "./explore.js";
import { HttpEngine } from "./http_engine.js";
import { placeSampling } from "./sampling.js";
import { startTabs } from "./tabs.js";
import { WasmEngine } from "./wasm_engine.js";

const element = (id) => document.getElementById(id);

function askForKey() {
  const dialog = element("key-dialog");
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const key = element("key").value;
      element("key").value = "";
      resolve(key);
    }, { once: true });
  });
}

function sizeText(bytes) {
  const mebi = bytes / 2 ** 20;
  return mebi >= 1 ? `${mebi.toFixed(1)} MiB` : `${Math.ceil(bytes / 1024)} KiB`;
}

function describe({ model, mixer, layers, heads, slots, bytes }) {
  const shape = `${layers} layers × ${heads} heads`;
  const memory = slots > 0 ? ` × ${slots} slots` : "";
  const told = [model, mixer, `${shape}${memory}`, `this text is kept in ${sizeText(bytes)}`, facts()];
  element("facts").textContent = told.filter((fact) => fact !== "").join(" · ");
  element("memory").hidden = slots === 0;
  element("no-memory").hidden = slots > 0;
  document.body.classList.toggle("memoryless", slots === 0);
}

// The engine of this page: the model that came with it, or else the server that it came from.
async function openEngine() {
  const site = element("site");
  if (!site) return new HttpEngine(askForKey);
  const progress = (part) => (element("facts").textContent = `loading the model: ${Math.round(100 * part)} %`);
  return WasmEngine.start(JSON.parse(site.textContent), progress);
}

const branches = new Branches();
const explore = new Explore(branches);
const compare = new Compare(branches);
new Chat();

for (const event of ["change", "touch"]) branches.addEventListener(event, () => describe(branches.current.session));
const redraw = () => {
  explore.refresh();
  compare.refresh();
};
onThemeChange(redraw);
addEventListener("resize", redraw);
startTabs((view) => {
  placeSampling(element(view));
  if (view === "compare") compare.open();
  if (view === "explore") explore.moveTo(Math.min(explore.position, branches.current?.tokens.length ?? 0));
});
placeSampling(element("explore"));
const start = () => guarded(() => branches.start());
element("main").inert = true; // until there is a model
addEventListener("pagehide", () => branches.leave());
const opened = await attempt(async () => useEngine(await openEngine()));
if (opened) {
  element("main").inert = false;
  watchServer(() => (branches.current ? explore.refresh() : start()));
  start();
} else {
  element("facts").textContent = "no model";
}
