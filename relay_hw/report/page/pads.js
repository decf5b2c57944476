// What the scratchpads hold over the cycles of a launch: the layer that fills each part of the entries, and how many.

import { el, number, percent } from "./dom.js";
import { colour, layerColour } from "./colours.js";
import { Frame, rowName } from "./frame.js";
import { selectByKeys, selectLayer, selection } from "./state.js";

const HEIGHT = 58;
const GAP = 14;

export class Pads {
  constructor(data) {
    this.data = data;
    this.label = "Scratchpads over time";
    this.frame = new Frame(this);
    this.node = el("div", {}, this.frame.node, this.frame.status, el("p", { class: "legend" }, LEGEND));
    selectByKeys(this.frame.node, data, () => [...new Set(this.launch().pads.flatMap((pad) => [...pad.layer]))]
      .filter((layer) => layer >= 0).sort((a, b) => a - b));
    selection.watch(() => this.frame.later());
  }

  launch() {
    return this.data.launches[selection.values.launch];
  }

  height() {
    return (this.launch()?.pads.length ?? 0) * (HEIGHT + GAP);
  }

  draw(place) {
    this.launch().pads.forEach((pad, k) => this.drawPad(place, pad, k * (HEIGHT + GAP)));
  }

  drawPad(place, pad, row) {
    const { context, left, top, width } = place;
    const y = top + row;
    rowName(place, pad.name, y + HEIGHT / 2 - 8);
    const most = pad.used.reduce((a, b) => Math.max(a, b), 0) / 1000;
    rowName(place, `≤ ${percent(most)}`, y + HEIGHT / 2 + 8);
    context.fillStyle = colour("card");
    context.fillRect(left, y, width, HEIGHT);
    this.drawRuns(place, pad, y);
    this.drawUsed(place, pad, y);
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, y + 0.5, width - 1, HEIGHT - 1);
  }

  // Cycles of one part of the time.
  get part() {
    const launch = this.launch();
    return launch.cycles / launch.parts;
  }

  drawRuns({ context, left, width, from, to, scale }, pad, y) {
    const rows = Math.min(this.data.pad_rows, pad.entries);
    const chosen = selection.values.layer;
    const tall = HEIGHT / rows;
    const colours = new Map();
    pad.layer.forEach((layer, k) => {
      const begin = pad.begin[k] * this.part;
      const end = begin + pad.length[k] * this.part;
      if (end <= from || begin >= to) return;
      if (!colours.has(layer)) colours.set(layer, layer === chosen && layer >= 0 ? colour("accent") : layerColour(layer));
      context.fillStyle = colours.get(layer);
      context.globalAlpha = chosen < 0 || layer === chosen ? 1 : 0.4;
      const x1 = Math.max((begin - from) * scale, 0);
      const x2 = Math.min((end - from) * scale, width);
      // Entry 0 is the lowest.
      context.fillRect(left + x1, y + HEIGHT - (pad.row[k] + 1) * tall, x2 - x1, tall + 0.4);
    });
    context.globalAlpha = 1;
  }

  // A line at the share of entries that are held.
  drawUsed({ context, left, width, from, to, scale }, pad, y) {
    context.save();
    context.beginPath();
    context.rect(left, y, width, HEIGHT);
    context.clip();
    context.strokeStyle = colour("ink");
    context.lineWidth = 1.25;
    context.beginPath();
    // Of parts narrower than a pixel the mean of so many.
    const step = Math.max(Math.ceil(1 / (this.part * scale)), 1);
    const first = Math.max(Math.floor(from / this.part / step) * step, 0);
    for (let k = first; k < pad.used.length && k * this.part < to; k += step) {
      const some = pad.used.subarray(k, k + step);
      const level = y + HEIGHT - 1 - (some.reduce((a, b) => a + b, 0) / some.length / 1000) * (HEIGHT - 2);
      context.lineTo(left + (k * this.part - from) * scale, level);
      context.lineTo(left + ((k + some.length) * this.part - from) * scale, level);
    }
    context.stroke();
    context.restore();
  }

  // Pad, and layer whose entries are at a place of the picture.
  at(cycle, y) {
    const number = Math.floor(y / (HEIGHT + GAP));
    const pad = this.launch().pads[number];
    const inside = y - number * (HEIGHT + GAP);
    if (!pad || inside < 0 || inside >= HEIGHT) return null;
    const rows = Math.min(this.data.pad_rows, pad.entries);
    const row = Math.floor((1 - inside / HEIGHT) * rows);
    const part = Math.floor(cycle / this.part);
    const run = pad.row.findIndex((one, k) => one === row && pad.begin[k] <= part && part < pad.begin[k] + pad.length[k]);
    return { pad, part, row, rows, layer: run < 0 ? null : pad.layer[run] };
  }

  told(cycle, y) {
    const found = this.at(cycle, y);
    if (!found) return "";
    const { pad, part, row, rows, layer } = found;
    const entries = (k) => Math.floor((k * pad.entries) / rows);
    const used = (pad.used[Math.min(part, pad.used.length - 1)] / 1000) * pad.entries;
    const who = layer === null ? "nothing" : (this.data.layers[layer]?.short ?? "loaded before the launch");
    return `cycle ${number(Math.floor(cycle))}: ${pad.name} entries ${number(entries(row))} to ${number(entries(row + 1) - 1)}: ${who}; `
      + `about ${number(Math.round(used))} of ${number(pad.entries)} entries of ${number(pad.entry_bytes)} bytes are in use`;
  }

  click(cycle, y) {
    const found = this.at(cycle, y);
    if (found && found.layer !== null && found.layer >= 0) selectLayer(this.data, found.layer, { launch: selection.values.launch });
  }
}

const LEGEND = "Entries, the first one at the bottom, in the colour of the layer that wrote them, "
  + "from the write to the last use; what was loaded before the launch has the colour of its last user (grey: none). The line is the share of entries in use.";
