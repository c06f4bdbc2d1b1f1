// The tabs of the header: click, or the arrow keys.

export function startTabs(opened) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const open = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
    opened(chosen.getAttribute("aria-controls"));
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const next = tabs[(i + step + tabs.length) % tabs.length];
      open(next);
      next.focus();
    });
  });
}
