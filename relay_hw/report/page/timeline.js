// The timeline of a launch: layers, what the array did, when each unit was at work and when it waited for semaphores.

import { above, el, fitted, number } from "./dom.js";
import { colour } from "./colours.js";
import { FONT, Frame, rowName } from "./frame.js";
import { selectByKeys, selectLayer, selection } from "./state.js";
import { bits, tokensOf } from "./tokens.js";

const LAYERS = { top: 0, height: 24 };
const ARRAY = { top: 30, height: 92 };
const UNITS = { top: 134, height: 22, wait: 6, step: 38 };
const LABELLED = 28;
// Instructions of one unit that may be under way together when another one starts.
const TOGETHER = 40;

// Shares of each pixel that intervals cover, which come in the order of their begins.
class Cover {
  constructor({ width, from, to, scale }) {
    this.shares = new Float32Array(Math.ceil(width));
    Object.assign(this, { from, to, scale, last: from });
  }

  // Only what no interval before covers.
  add(begin, end) {
    this.spread(Math.max(begin, this.last), end, 1);
    this.last = Math.max(this.last, end);
  }

  spread(begin, end, share) {
    const left = (Math.max(begin, this.from) - this.from) * this.scale;
    const right = (Math.min(end, this.to) - this.from) * this.scale;
    if (right <= left) return;
    const first = Math.floor(left);
    const last = Math.min(Math.floor(right), this.shares.length - 1);
    if (first === last) this.shares[first] += share * (right - left);
    else {
      this.shares[first] += share * (first + 1 - left);
      for (let x = first + 1; x < last; x += 1) this.shares[x] += share;
      this.shares[last] += share * (right - last);
    }
  }
}

function drawCover({ context, left, top }, cover, row, height, fill) {
  context.fillStyle = fill;
  cover.shares.forEach((share, x) => {
    const tall = Math.min(share, 1) * height;
    if (tall > 0.2) context.fillRect(left + x, top + row + height - tall, 1, tall);
  });
}

export class Timeline {
  constructor(data) {
    this.data = data;
    this.label = "Timeline of a launch";
    this.frame = new Frame(this);
    this.node = el("div", {}, this.frame.node, this.frame.status, this.legend());
    selectByKeys(this.frame.node, data, () => [...new Set(this.launch().bands.layer)].filter((layer) => layer >= 0));
    selection.watch(() => this.frame.later());
  }

  launch() {
    return this.data.launches[selection.values.launch];
  }

  height() {
    return UNITS.top + this.data.units.length * UNITS.step;
  }

  legend() {
    const names = new Set(["products"]);
    this.data.launches.forEach((launch) => launch.kinds.forEach((kind) => names.add(kind.fill ? "fill" : kind.cause)));
    if (this.data.layers.some((row) => row.stalls.lanes)) names.add("lanes");
    const shown = Object.keys(this.data.causes).filter((name) => names.has(name));
    const parts = shown.flatMap((name) => [el("span", { title: this.data.causes[name] }, el("i", { class: `c-${name}` }), name), " "]);
    return el("p", { class: "legend" }, ...parts,
      el("span", {}, el("i", { class: "c-work" }), "unit busy"), " ",
      el("span", {}, el("i", { class: "c-wait" }), "unit waits for semaphores"));
  }

  draw(place) {
    const launch = this.launch();
    this.drawBands(place, launch);
    this.drawArray(place, launch);
    this.data.units.forEach((name, unit) => this.drawUnit(place, launch, name, unit));
    if (selection.values.instruction >= 0) this.drawTokens(place, launch);
  }

  drawBands(place, { bands }) {
    const { context, left, top, from, to, scale, width } = place;
    rowName(place, "layer", top + LAYERS.height / 2);
    context.textAlign = "left";
    for (let k = above(bands.end, from); k < bands.begin.length && bands.begin[k] < to; k += 1) {
      const x = Math.max((bands.begin[k] - from) * scale, 0);
      const wide = Math.min((bands.end[k] - from) * scale, width) - x;
      const chosen = bands.layer[k] === selection.values.layer;
      context.fillStyle = chosen ? colour("accent") : colour(`band${bands.layer[k] & 1}`);
      context.fillRect(left + x, top, Math.max(wide, chosen ? 1.5 : 0.5), LAYERS.height);
      if (wide < LABELLED) continue;
      context.fillStyle = chosen ? colour("on-accent") : colour("ink");
      context.fillText(fitted(this.nameOf(bands.layer[k]), wide - 8, FONT), left + x + 4, top + LAYERS.height / 2);
    }
  }

  nameOf(layer) {
    return this.data.layers[layer]?.short ?? "no layer";
  }

  // Causes stacked, products lowest.
  drawArray(place, { ends, spent, kinds, useful }) {
    const { context, left, top, from, to } = place;
    const names = Object.keys(this.data.causes);
    const covers = new Map(names.map((name) => [name, new Cover(place)]));
    for (let k = above(ends, from); k < ends.length && ends[k] - spent.length[k] < to; k += 1) {
      const [begin, end, kind] = [ends[k] - spent.length[k], ends[k], kinds[spent.kind[k]]];
      const name = kind.fill ? "fill" : kind.cause;
      const share = name === "products" ? (useful[spent.layer[k]] ?? 1000) / 1000 : 1;
      covers.get(name).spread(begin, end, share);
      if (share < 1) covers.get("lanes").spread(begin, end, 1 - share);
    }
    rowName(place, "array", top + ARRAY.top + ARRAY.height / 2);
    const height = new Float32Array(covers.get("products").shares.length);
    for (const name of names) {
      context.fillStyle = colour(name);
      covers.get(name).shares.forEach((share, x) => {
        const tall = share * ARRAY.height;
        if (tall > 0.05) context.fillRect(left + x, top + ARRAY.top + ARRAY.height - height[x] - tall, 1, tall);
        height[x] += tall;
      });
    }
  }

  // Places of a unit's instructions that may be at work between two cycles.
  *shown(launch, unit, from, to) {
    const own = launch.units[unit];
    const { start, waited } = launch.instructions;
    let [low, high] = [0, own.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[own[middle]] <= from) low = middle + 1;
      else high = middle;
    }
    for (let k = Math.max(low - TOGETHER, 0); k < own.length && start[own[k]] - waited[own[k]] < to; k += 1) yield own[k];
  }

  drawUnit(place, launch, name, unit) {
    const { start, length, waited, layer } = launch.instructions;
    const [work, wait, chosen] = [new Cover(place), new Cover(place), new Cover(place)];
    for (const k of this.shown(launch, unit, place.from, place.to)) {
      work.add(start[k] + 1, start[k] + length[k] + 1);
      wait.add(start[k] - waited[k], start[k]);
      if (layer[k] === selection.values.layer) chosen.add(start[k] + 1, start[k] + length[k] + 1);
    }
    const row = UNITS.top + unit * UNITS.step;
    rowName(place, name, place.top + row + UNITS.height / 2 + 2);
    drawCover(place, work, row, UNITS.height, colour("work"));
    drawCover(place, chosen, row, UNITS.height, colour("accent"));
    drawCover(place, wait, row + UNITS.height + 1, UNITS.wait, colour("wait"));
    place.context.fillStyle = colour("line");
    place.context.fillRect(place.left, place.top + row + UNITS.height, place.width, 1);
  }

  // Lines from those that gave the selected instruction its tokens, and to those that it gave some.
  drawTokens({ context, left, top, from, scale, width }, launch) {
    const chosen = selection.values.instruction;
    const { took, gave } = tokensOf(launch);
    const { start, length, op } = launch.instructions;
    const y = (k) => top + UNITS.top + this.data.ops[op[k]].unit * UNITS.step + UNITS.height / 2;
    const x = (cycle) => left + (cycle - from) * scale;
    context.save();
    context.beginPath();
    context.rect(left, top, width, this.height());
    context.clip();
    const line = (giver, taker) => {
      const [x1, x2] = [x(start[giver] + length[giver] + 1), x(start[taker])];
      context.beginPath();
      context.moveTo(x1, y(giver));
      context.lineTo(x2, y(taker));
      context.stroke();
      context.beginPath();
      context.arc(x2, y(taker), 3, 0, 7);
      context.fill();
    };
    context.strokeStyle = context.fillStyle = colour("ink");
    context.lineWidth = 1.5;
    (took.get(chosen) ?? []).forEach(([, giver]) => line(giver, chosen));
    (gave.get(chosen) ?? []).forEach(([, taker]) => line(chosen, taker));
    context.strokeRect(x(start[chosen] + 1), y(chosen) - UNITS.height / 2, Math.max(length[chosen] * scale, 2), UNITS.height);
    context.restore();
  }

  // The instruction at a cycle in the row of a unit, -1 of none.
  instructionAt(cycle, y) {
    const unit = Math.floor((y - UNITS.top) / UNITS.step);
    if (y < UNITS.top || unit >= this.data.units.length) return -1;
    const launch = this.launch();
    const { start, length, waited } = launch.instructions;
    let found = -1;
    for (const k of this.shown(launch, unit, cycle, cycle + 1)) {
      if (start[k] - waited[k] <= cycle && cycle < start[k] + length[k] + 1) found = k;
    }
    return found;
  }

  told(cycle, y) {
    const launch = this.launch();
    const at = `cycle ${number(Math.floor(cycle))}`;
    const k = this.instructionAt(cycle, y);
    if (k >= 0) return `${at}: ${this.instructionText(launch, k)}`;
    if (y >= UNITS.top) return at;
    const stretch = Math.min(above(launch.ends, cycle), launch.ends.length - 1);
    const kind = launch.kinds[launch.spent.kind[stretch]];
    const cause = `${kind.cause}${kind.what ? ` ${kind.what}` : ""}${kind.fill ? ", before the first work" : ""}`;
    return `${at}: ${this.nameOf(launch.spent.layer[stretch])}, ${cause}: ${this.data.causes[kind.cause]}`;
  }

  instructionText(launch, k) {
    const { op, start, length, waited, layer, takes, gives } = launch.instructions;
    const tokens = (what, mask) => (mask ? `; ${what} semaphore ${bits(mask).join(", ")}` : "");
    const wait = waited[k] ? `, waited ${number(waited[k])}` : "";
    const times = `cycles ${number(start[k])} to ${number(start[k] + length[k])}${wait}`;
    return `${this.data.ops[op[k]].name} #${k} of ${this.nameOf(layer[k])}, ${times}${tokens("takes", takes[k])}${tokens("gives", gives[k])}`;
  }

  click(cycle, y) {
    const launch = this.launch();
    const k = this.instructionAt(cycle, y);
    const stretch = Math.min(above(launch.ends, cycle), launch.ends.length - 1);
    const layer = k >= 0 ? launch.instructions.layer[k] : launch.spent.layer[stretch];
    selectLayer(this.data, layer, { launch: selection.values.launch, instruction: k });
  }
}
