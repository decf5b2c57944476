// Rows of the tables that came as HTML: a click selects their layer, and the selected one is marked.

import { selectLayer, selection } from "./state.js";

export function linkTables(data) {
  const rows = [...document.querySelectorAll("table tr[data-layer]")];
  rows.forEach((row) => row.addEventListener("click", () => selectLayer(data, Number(row.dataset.layer))));
  selection.watch(({ layer }) => rows.forEach((row) => row.classList.toggle("chosen", Number(row.dataset.layer) === layer)));
}
