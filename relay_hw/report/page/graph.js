// The network as a graph, laid out when the page was made: one box an operator, coloured by what the reader asks for.

import { button, el, fitted, plainOperator, svg, textWidth } from "./dom.js";
import { selectLayer, selection } from "./state.js";

const SCALES = [0.3, 0.45, 0.65, 0.85, 1, 1.25, 1.6];
// Below it letters would be too small to read, so boxes have none.
const READABLE = 1;
const [NAME, SMALL] = ["600 12px system-ui, sans-serif", "12px system-ui, sans-serif"];
const INSIDE = 9;
export class Graph {
  // `graph`: nodes with their places; `colourings`: by name; `name` tells it from another one on the page.
  constructor(data, graph, colourings, name = "") {
    Object.assign(this, { data, graph, colourings, name });
    this.scale = SCALES.indexOf(READABLE);
    this.boxes = this.graph.nodes.map((node, k) => this.box(node, k));
    this.wires = this.graph.wires.map((wire) => svg("path", { class: "wire", d: path(wire.points) }));
    this.picture = svg("svg", {
      role: "listbox", tabindex: 0, "aria-label": `Operators of the network${name ? ` ${name}` : ""}. Up and down select the previous or the next`,
      viewBox: `0 0 ${this.graph.width} ${this.graph.height}`,
    }, ...this.wires, ...this.boxes);
    this.room = el("div", { class: "graph" }, this.picture);
    this.legend = el("p", { class: "legend" });
    this.node = el("div", {}, this.tools(), this.room, this.legend);
    this.picture.addEventListener("keydown", (event) => this.key(event));
    selection.watch(() => this.paint());
    this.resize();
    this.paint();
  }

  tools() {
    const zoom = (step) => () => {
      this.scale = Math.min(Math.max(this.scale + step, 0), SCALES.length - 1);
      this.resize();
      this.reveal();
    };
    const fit = () => {
      const room = this.room.clientWidth / this.graph.width;
      this.scale = Math.max(SCALES.findLastIndex((scale) => scale <= room), 0);
      this.resize();
    };
    const colours = el("select", { "aria-label": `Colour of the boxes${this.name ? ` of ${this.name}` : ""}`, on: { change: (event) => selection.set({ colour: event.target.value }) } },
      ...Object.entries(this.colourings).map(([key, one]) => el("option", { value: key, disabled: !this.known(key) }, `by ${one.name}`)));
    if (!this.known(selection.values.colour)) selection.values.colour = Object.keys(this.colourings).find((key) => this.known(key));
    colours.value = selection.values.colour;
    selection.watch(({ colour }) => { colours.value = colour; });
    return el("div", { class: "tools" }, colours, button("−", "Zoom out", zoom(-1)), button("+", "Zoom in", zoom(1)), button("Fit", "Fit: fill the width", fit));
  }

  known(key) {
    return key in this.colourings && this.graph.nodes.some((node) => this.colourings[key].has(this.data.layers[node.layer], node));
  }

  box(node, k) {
    const isEdge = node.where === "input" || node.where === "output";
    const kind = isEdge ? "edge" : node.where === "host" ? "host" : "device";
    return svg("g", {
      class: `node ${kind}`, id: `node${this.name}-${k}`, role: "option", "aria-selected": "false",
      transform: `translate(${node.x} ${node.y})`, on: { click: () => this.choose(k) },
    },
      svg("title", {}, `${node.name}, ${second(node)}`),
      svg("rect", { width: node.width, height: this.graph.box, rx: isEdge ? 20 : 6 }),
      svg("text", { x: INSIDE, y: 18, class: "name" }, fitted(node.short, node.width - 2 * INSIDE, NAME)),
      svg("text", { x: INSIDE, y: 36, class: "soft" }),
      svg("text", { x: node.width - INSIDE, y: 36, class: "figure", "text-anchor": "end" }));
  }

  choose(k) {
    selectLayer(this.data, this.graph.nodes[k].layer ?? -1, { node: k });
  }

  key(event) {
    const count = this.boxes.length;
    const at = this.current();
    const steps = { ArrowDown: at + 1, ArrowUp: at < 0 ? count - 1 : at - 1, Home: 0, End: count - 1 };
    if (!(event.key in steps) || !count || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(steps[event.key], 0), count - 1));
  }

  // The node that is meant: the one chosen here, else the first of the selected layer.
  current() {
    const { layer, node } = selection.values;
    if (node >= 0 && (this.graph.nodes[node]?.layer ?? -1) === layer) return node;
    return layer < 0 ? -1 : this.graph.nodes.findIndex((one) => one.layer === layer);
  }

  resize() {
    const scale = SCALES[this.scale];
    this.picture.setAttribute("width", this.graph.width * scale);
    this.picture.setAttribute("height", this.graph.height * scale);
    this.picture.classList.toggle("small", scale < READABLE);
  }

  paint() {
    const one = this.colourings[selection.values.colour];
    const current = this.current();
    this.boxes.forEach((box, k) => {
      const node = this.graph.nodes[k];
      const row = this.data.layers[node.layer];
      const known = one.has(row, node) && !box.classList.contains("edge");
      box.style.setProperty("--heat", `${known ? Math.round(62 * one.share(row, node)) : 0}%`);
      const figure = known ? one.text(row, node) : "";
      const room = node.width - 2 * INSIDE - (figure ? textWidth(figure, SMALL) + INSIDE : 0);
      box.querySelector(".figure").textContent = figure;
      box.querySelector(".soft").textContent = fitted(second(node), room, SMALL);
      for (const kind of ["gain", "loss"]) box.classList.toggle(kind, known && one.kind?.(row) === kind);
      box.classList.toggle("alone", Boolean(row && row.alone));
      box.setAttribute("aria-selected", String(k === current));
    });
    this.graph.wires.forEach((wire, k) => this.wires[k].classList.toggle("chosen", wire.begin === current || wire.end === current));
    if (current >= 0) this.picture.setAttribute("aria-activedescendant", `node${this.name}-${current}`);
    else this.picture.removeAttribute("aria-activedescendant");
    this.legend.textContent = one.legend;
    this.reveal();
  }

  // Scrolls the box, and nothing else, to the selected node.
  reveal() {
    const current = this.current();
    if (current < 0) return;
    const [node, scale, room] = [this.graph.nodes[current], SCALES[this.scale], this.room];
    const [x, y] = [node.x * scale, node.y * scale];
    const [wide, tall] = [node.width * scale, this.graph.box * scale];
    if (y < room.scrollTop || y + tall > room.scrollTop + room.clientHeight) room.scrollTop = y - room.clientHeight / 2 + tall / 2;
    if (x < room.scrollLeft || x + wide > room.scrollLeft + room.clientWidth) room.scrollLeft = x - room.clientWidth / 2 + wide / 2;
  }
}

// The second line of a box. A batch of one goes without saying.
function second(node) {
  const shape = (node.shape ?? "").replace(/^1x(?=\d)/, "");
  return node.operator === node.where ? shape : `${plainOperator(node.operator)} ${shape}`;
}

// Straight where a line keeps its column, curved where it changes it.
function path(points) {
  let text = `M${points[0]} ${points[1]}`;
  for (let k = 2; k < points.length; k += 2) {
    const [x0, y0, x1, y1] = [points[k - 2], points[k - 1], points[k], points[k + 1]];
    const middle = (y0 + y1) / 2;
    text += x0 === x1 ? `V${y1}` : `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  return text;
}
