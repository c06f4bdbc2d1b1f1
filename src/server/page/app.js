// The entry point: assembles the page.

import { onKeyWanted } from "./api.js";
import { guarded, watchServer } from "./banner.js";
import { Branches } from "./branches.js";
import { Chat } from "./chat.js";
import { onThemeChange } from "./colors.js";
import { Compare } from "./compare.js";
import { Explore } from "./explore.js";
import { placeSampling } from "./sampling.js";
import { startTabs } from "./tabs.js";

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
  element("facts").textContent = `${model} · ${mixer} · ${shape}${memory} · this text is kept in ${sizeText(bytes)}`;
  element("memory").hidden = slots === 0;
  element("no-memory").hidden = slots > 0;
  document.body.classList.toggle("memoryless", slots === 0);
}

onKeyWanted(askForKey);
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
watchServer(() => (branches.current ? explore.refresh() : start()));
addEventListener("pagehide", () => branches.leave());
start();
