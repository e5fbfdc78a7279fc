// Before the first paint: says that scripts run, and takes up the colours chosen in this tab. A classic script in the
// head. The choice is kept in sessionStorage and nowhere else.
(() => {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("js");

  /** @type {string | null} */
  let chosen = null;
  try {
    chosen = sessionStorage.getItem("theme");
  } catch { /* storage is switched off: the system decides */ }
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        sessionStorage.setItem("theme", root.dataset.theme);
      } catch { /* it lasts until the page is left */ }
      show();
    });
    system.addEventListener("change", show);
    show();
  });
})();
