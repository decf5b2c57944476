// The DRAM window: its sections to scale, and in each what every layer loads and stores.

import { el, number, svg } from "./dom.js";
import { layerColour, watchLook } from "./colours.js";
import { selectByKeys, selectLayer, selection } from "./state.js";

const LANE = 11;
const MOST_LANES = 8;
const NARROW = 1.5;

export class Memory {
  constructor(data) {
    this.data = data;
    this.room = el("div", { class: "map", tabindex: 0, role: "group", "aria-label": "DRAM map. Up and down select layers" });
    this.status = el("p", { class: "status" }, HINT);
    this.node = el("div", {}, this.room, this.status);
    selectByKeys(this.room, data, () => [...new Set(this.launch().pieces.layer)].filter((layer) => layer >= 0).sort((a, b) => a - b));
    selection.watch(() => this.paint());
    watchLook(() => this.draw());
    new ResizeObserver(() => this.resized()).observe(this.room);
  }

  launch() {
    return this.data.launches[selection.values.launch];
  }

  resized() {
    if (this.room.clientWidth !== this.width) this.draw();
  }

  draw() {
    this.width = this.room.clientWidth;
    this.shown = this.launch();
    if (!this.width) return;
    this.marks = [];
    const parts = this.shown.sections.map((section, k) => this.section(section, k)).sort((a, b) => a.offset - b.offset);
    this.room.replaceChildren(this.overview(), ...parts.map(({ node }) => node));
    this.paint();
  }

  // All sections, as wide as they are large.
  overview() {
    const scale = this.width / this.shown.window_bytes;
    const bars = this.shown.sections.map((section) => svg("rect", {
      class: `section s-${section.kind}`, x: section.offset * scale, y: 0, width: Math.max(section.size * scale, 1), height: 16,
      on: this.telling(`${section.name}: ${number(section.size)} bytes from ${number(section.offset)}`),
    }));
    const text = `The window: ${number(this.shown.window_bytes)} bytes`;
    return el("div", {}, el("h3", {}, text), svg("svg", { width: this.width, height: 16, role: "img", "aria-label": text }, ...bars));
  }

  telling(text) {
    return {
      pointerenter: () => { this.status.textContent = text; },
      pointerleave: () => { this.status.textContent = HINT; },
    };
  }

  section(section, k) {
    const { pieces } = this.shown;
    const own = [];
    pieces.section.forEach((place, piece) => {
      if (place === k) own.push(piece);
    });
    own.sort((a, b) => pieces.begin[a] - pieces.begin[b]);
    const scale = this.width / section.size;
    const lanes = [];
    const bars = own.map((piece) => {
      const x = (pieces.begin[piece] - section.offset) * scale;
      const wide = Math.max((pieces.end[piece] - pieces.begin[piece]) * scale, NARROW);
      let lane = lanes.findIndex((end) => end <= x);
      if (lane < 0) lane = Math.min(lanes.length, MOST_LANES - 1);
      lanes[lane] = Math.max(lanes[lane] ?? 0, x + wide);
      return this.bar(piece, x, wide, lane * LANE);
    });
    const height = Math.max(lanes.length, 1) * LANE;
    const text = `${section.name}: ${number(section.size)} bytes from ${number(section.offset)}`;
    const picture = svg("svg", { width: this.width, height, role: "img", "aria-label": text },
      svg("rect", { class: "ground", width: this.width, height }), ...bars);
    return { offset: section.offset, node: el("div", {}, el("h3", {}, text), picture) };
  }

  bar(piece, x, wide, y) {
    const { pieces } = this.shown;
    const [layer, written] = [pieces.layer[piece], pieces.written[piece]];
    const name = this.data.layers[layer]?.short ?? "a launch before the first inference";
    const text = `${name} ${written ? "stores" : "loads"} bytes ${number(pieces.begin[piece])} to ${number(pieces.end[piece])}, `
      + `in cycles ${number(pieces.first[piece])} to ${number(pieces.last[piece])}`;
    const mark = svg("rect", {
      class: written ? "piece written" : "piece", x, y: y + 0.5, width: wide, height: LANE - 2, fill: layerColour(layer), "data-layer": layer,
      on: { click: () => selectLayer(this.data, layer, { launch: selection.values.launch }), ...this.telling(text) },
    });
    this.marks.push([mark, layer]);
    return mark;
  }

  paint() {
    if (this.shown !== this.launch()) {
      this.draw();
      return;
    }
    const chosen = selection.values.layer;
    (this.marks ?? []).forEach(([mark, layer]) => {
      mark.classList.toggle("chosen", layer === chosen);
      mark.classList.toggle("faded", chosen >= 0 && layer !== chosen);
    });
  }
}

const HINT = "Every section fills the width. Colours are layers; what a layer stores has a border. Bytes that several tensors share have several rows.";
