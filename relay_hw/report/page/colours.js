// Colours as the page's style has them now, and their changes.

const watchers = [];

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// A hue of its own for each layer, neighbours far apart; how light it is follows the page.
export function layerColour(layer) {
  if (layer < 0) return colour("fill");
  const dark = colour("dark") === "1";
  return `hsl(${(layer * 137.5 + 210) % 360} ${dark ? "42% 52%" : "48% 62%"})`;
}

// Tells of another look: dark, light, or paper.
export function watchLook(tell) {
  watchers.push(tell);
}

for (const query of ["(prefers-color-scheme: dark)", "print"]) {
  window.matchMedia(query).addEventListener("change", () => watchers.forEach((tell) => tell()));
}
