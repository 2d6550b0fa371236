// Runs before the first paint, so that a dark page never flashes white.
(function () {
  var wish = null;
  try {
    wish = JSON.parse(localStorage.getItem("afl.theme") || "null");
  } catch (_) {
    wish = null;
  }
  var dark =
    wish === "dark" ||
    (wish !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
