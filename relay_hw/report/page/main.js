// Puts the views onto the page.

import { button, el, number } from "./dom.js";
import { buildColourings } from "./colourings.js";
import { readData } from "./data.js";
import { Detail } from "./detail.js";
import { pan, show, zoom } from "./frame.js";
import { Graph } from "./graph.js";
import { Memory } from "./memory.js";
import { Pads } from "./pads.js";
import { Roofline } from "./roofline.js";
import { Schedule } from "./schedule.js";
import { range, selection } from "./state.js";
import { linkTables } from "./tables.js";
import { Timeline } from "./timeline.js";

function section(id, title, ...children) {
  return el("section", { id }, el("h2", {}, title), ...children);
}

function card(...children) {
  return el("div", { class: "card view" }, ...children);
}

// What is selected, at the lower edge of the window, with ways to each view of it.
function bar(data, places) {
  const name = el("b");
  const figures = el("span");
  const jumps = places.map(([text, id]) => button(text, `Go to ${text}`, () => document.getElementById(id).scrollIntoView({ block: "start" })));
  const node = el("div", { class: "selected", role: "region", "aria-label": "Selected layer" }, name, figures, el("span", { class: "jumps" }, ...jumps));
  const fill = ({ layer }) => {
    const row = data.layers[layer];
    name.textContent = row?.short ?? "nothing selected";
    figures.textContent = row && row.where !== "host" ? `${number(row.cycles)} cycles` : (row?.where ?? "");
  };
  selection.watch(fill);
  fill(selection.values);
  return node;
}

// Shows the cycles in which the selected layer has instructions.
function showLayer(launch) {
  const { start, length, layer } = launch.instructions;
  let [from, to] = [Infinity, 0];
  layer.forEach((one, k) => {
    if (one !== selection.values.layer) return;
    from = Math.min(from, start[k]);
    to = Math.max(to, start[k] + length[k]);
  });
  if (to > from) show(launch, from - (to - from) / 20, to + (to - from) / 20);
}

// Buttons that change the cycles shown, in all views over time.
function zoomTools(data) {
  const launch = () => data.launches[selection.values.launch];
  return [
    button("◀", "Earlier", () => pan(launch(), -0.5)), button("▶", "Later", () => pan(launch(), 0.5)),
    button("−", "Zoom out of the cycles", () => zoom(launch(), 2)), button("+", "Zoom into the cycles", () => zoom(launch(), 0.5)),
    button("All", "All: the whole launch", () => show(launch(), 0, launch().cycles)),
    button("Layer", "Layer: zoom to the selected layer", () => showLayer(launch())),
  ];
}

function timeTools(data) {
  const choose = el("select", { "aria-label": "Launch", on: { change: (event) => selection.set({ launch: Number(event.target.value) }) } },
    ...data.launches.map((one, k) => el("option", { value: k }, `@${one.function}, ${number(one.cycles)} cycles, ${number(one.launches)} per inference`)));
  selection.watch((values) => { choose.value = values.launch; });
  return el("div", { class: "tools" }, choose, ...zoomTools(data));
}

function timeViews(data) {
  let shown = selection.values.launch;
  show(data.launches[shown], 0, data.launches[shown].cycles);
  selection.watch((values) => {
    if (values.launch === shown) return;
    shown = values.launch;
    show(data.launches[shown], 0, data.launches[shown].cycles);
  });
  const [timeline, pads] = [new Timeline(data), new Pads(data)];
  return { timeline, nodes: [section("timeline", "Timeline", card(timeTools(data), timeline.node)), section("pads", "Scratchpads", card(el("div", { class: "tools" }, ...zoomTools(data)), pads.node))] };
}

async function main() {
  const room = document.getElementById("views");
  if (!room) return;
  const data = await readData();
  const places = [];
  const time = data.launches.length ? timeViews(data) : null;
  const detail = section("detail", "Selected", card(new Detail(data, time?.timeline).node));
  const [left, right] = [el("div"), el("div", {}, detail, ...(time?.nodes ?? []))];
  if (data.graph) left.append(section("network", "Network", card(new Graph(data, data.graph, buildColourings(data.layers)).node)));
  if (time) {
    const roofline = new Roofline(data);
    if (!roofline.isEmpty) left.append(section("roofline", "Roofline", card(roofline.node)));
    right.append(section("memory", "DRAM", card(new Memory(data).node)));
  }
  room.replaceChildren(el("div", { class: "beside" }, left, right), ...(time ? [section("schedule", "Schedule", new Schedule(data).node)] : []));
  if (data.graph) places.push(["network", "network"]);
  if (time) places.push(["timeline", "timeline"], ["DRAM", "memory"], ["schedule", "schedule"]);
  places.push(["table", "layers"]);
  linkTables(data);
  document.querySelector("main").append(bar(data, places));
  document.documentElement.dataset.ready = String(range.values.to);
}

main();
