// Runs before the first paint, so that a chosen theme does not flash. The choice is the only thing kept in the browser's storage besides taste.
(() => {
  try {
    const theme = JSON.parse(localStorage.getItem("foliot.preferences") || "{}").theme;
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage the system's theme applies.
  }
})();
