// Before anything is drawn, so that the page does not flash in the other theme. No other script may stand in the page.
(() => {
  try {
    const chosen = localStorage.getItem("recollect.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing for us follows the system.
  }
})();
