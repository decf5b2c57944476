// The page of two builds: a network of each, one selection for both, and how a pair of layers differs.

import { el, number } from "./dom.js";
import { differenceColourings } from "./colourings.js";
import { readData } from "./data.js";
import { Graph } from "./graph.js";
import { selection } from "./state.js";
import { linkTables } from "./tables.js";

function card(title, id, ...children) {
  return el("section", { id }, el("h2", {}, title), el("div", { class: "card view" }, ...children));
}

// Rows of what both have, then of what changed.
function detail(data) {
  const node = el("div", { class: "detail", "aria-live": "polite", tabindex: 0, role: "region", "aria-label": "The selected pair" });
  const fill = ({ layer }) => {
    const pair = data.layers[layer];
    if (!pair) {
      node.replaceChildren(el("p", {}, "Nothing selected: click a box or a row, or press the arrow keys in a network."));
      return;
    }
    const rows = [["cycles", number(pair.cycles.a), number(pair.cycles.b)], ...pair.changes.map((one) => [one.what, one.a, one.b])];
    const causes = Object.entries(pair.more_by_cause).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const head = el("tr", {}, ...["what", "A", "B"].map((text) => el("th", {}, text)));
    const body = rows.map((cells) => el("tr", {}, ...cells.map((text) => el("td", {}, text || "none"))));
    const told = causes.map(([cause, cycles]) => `${cause} ${cycles > 0 ? "+" : ""}${number(cycles)}`).join(", ");
    node.replaceChildren(el("h3", {}, pair.name), el("p", {}, told ? `Cycles by cause, B minus A: ${told}.` : "The cycles of both went to the same causes."),
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
  };
  selection.watch(fill);
  fill(selection.values);
  return node;
}

async function main() {
  const data = await readData();
  selection.values.colour = "change";
  const sides = [["a", "A"], ["b", "B"]].filter(([side]) => data.graphs[side]);
  const graphs = sides.map(([side, name]) => card(`Network of ${name}`, `network-${side}`,
    new Graph(data, data.graphs[side], differenceColourings(data.layers, side), name).node));
  document.getElementById("views").replaceChildren(card("Selected", "detail", detail(data)), el("div", { class: "twins" }, ...graphs));
  linkTables(data);
  document.documentElement.dataset.ready = "1";
}

main();
