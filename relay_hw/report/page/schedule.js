// The schedule: layers of a launch in the order in which they begin, with their instructions and tiles.

import { el, number, plainOperator } from "./dom.js";
import { selectLayer, selection } from "./state.js";

export class Schedule {
  constructor(data) {
    this.data = data;
    this.node = el("div", { class: "card", tabindex: 0, role: "region", "aria-label": "Schedule" });
    this.fill();
    selection.watch(() => this.paint());
  }

  launch() {
    return this.data.launches[selection.values.launch];
  }

  fill() {
    this.shown = this.launch();
    const { op, start, length, layer, waited } = this.shown.instructions;
    const rows = new Map();
    op.forEach((code, k) => {
      const row = rows.get(layer[k]) ?? { first: Infinity, last: 0, waited: 0, counts: new Map() };
      rows.set(layer[k], row);
      row.first = Math.min(row.first, start[k]);
      row.last = Math.max(row.last, start[k] + length[k]);
      row.waited += waited[k];
      row.counts.set(code, (row.counts.get(code) ?? 0) + 1);
    });
    const ops = [...new Set(op)].sort((a, b) => a - b);
    const head = ["layer", "first cycle", "last", "waits"].concat(ops.map((code) => this.data.ops[code].name), "tile, and why");
    const body = [...rows].sort((a, b) => a[1].first - b[1].first).map(([number, row]) => this.row(number, row, ops));
    const cells = head.map((text, k) => el("th", { class: k && k < head.length - 1 ? "n" : "" }, text));
    this.node.replaceChildren(el("table", { class: "schedule" }, el("thead", {}, el("tr", {}, ...cells)), el("tbody", {}, ...body)));
    this.paint();
  }

  row(layer, row, ops) {
    const info = this.data.layers[layer];
    const pick = el("button", { type: "button", class: "pick", on: { click: () => selectLayer(this.data, layer, { launch: selection.values.launch }) } },
      info?.short ?? "no layer");
    const counts = ops.map((code) => row.counts.get(code)).map((count) => (count ? number(count) : ""));
    const cells = [number(row.first), number(row.last), number(row.waited), ...counts].map((text) => el("td", { class: "n" }, text));
    const why = el("td", { class: "text" }, info ? `${plainOperator(info.operator)} ${info.reason}` : "");
    return el("tr", { "data-layer": layer }, el("td", { class: "name" }, pick), ...cells, why);
  }

  paint() {
    if (this.shown !== this.launch()) {
      this.fill();
      return;
    }
    this.node.querySelectorAll("tr[data-layer]").forEach((row) => row.classList.toggle("chosen", Number(row.dataset.layer) === selection.values.layer));
  }
}
