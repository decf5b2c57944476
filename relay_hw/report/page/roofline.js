// The roofline: multiply-accumulates a cycle of each layer over those that it makes for a byte that crosses the bus.

import { el, fitted, number, svg } from "./dom.js";
import { selectByKeys, selectLayer, selection } from "./state.js";

const HEIGHT = 320;
const ROOM = { left: 58, right: 18, top: 16, bottom: 44 };
const LABELLED = 3;
const FONT = "12px system-ui, sans-serif";
const NAME = { most: 230, tall: 15 };

// Powers of ten, and 2 and 5 times them where there is room, from `low` to `high`.
function ticks(low, high) {
  const found = [];
  const factors = Math.log10(high / low) < 2.5 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    factors.map((factor) => factor * 10 ** power).filter((value) => value >= low && value <= high).forEach((value) => found.push(value));
  }
  return found;
}

export class Roofline {
  constructor(data) {
    this.data = data;
    this.points = data.layers.map((row, layer) => ({ layer, row, x: row.macs / row.bytes.total, y: row.macs / row.cycles }))
      .filter(({ row }) => row.macs > 0 && row.cycles > 0 && row.bytes.total > 0);
    this.most = Math.max(...this.points.map(({ row }) => row.cycles), 1);
    const label = "Roofline. Up and down select layers";
    this.room = el("div", { class: "plot", tabindex: 0, role: "group", "aria-label": label });
    this.status = el("p", { class: "status" }, HINT);
    this.node = el("div", {}, this.room, this.status);
    selectByKeys(this.room, data, () => [...this.points].sort((a, b) => b.row.cycles - a.row.cycles).map(({ layer }) => layer));
    selection.watch(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.room);
  }

  get isEmpty() {
    return !this.points.length || !this.data.macs_per_cycle || !this.data.bus_bytes;
  }

  draw() {
    const width = this.room.clientWidth;
    if (!width || this.isEmpty || width === this.drawn?.width && selection.values.layer === this.drawn?.layer) return;
    this.drawn = { width, layer: selection.values.layer };
    const { macs_per_cycle: peak, bus_bytes: bus } = this.data;
    const ridge = peak / bus;
    const xs = [Math.min(ridge, ...this.points.map((p) => p.x)) / 1.8, Math.max(ridge, ...this.points.map((p) => p.x)) * 1.8];
    const ys = [Math.min(peak / 4, ...this.points.map((p) => p.y)) / 1.8, peak * 3];
    const x = (value) => ROOM.left + (Math.log(value / xs[0]) / Math.log(xs[1] / xs[0])) * (width - ROOM.left - ROOM.right);
    const y = (value) => HEIGHT - ROOM.bottom - (Math.log(value / ys[0]) / Math.log(ys[1] / ys[0])) * (HEIGHT - ROOM.top - ROOM.bottom);
    const picture = svg("svg", { width, height: HEIGHT, role: "img", "aria-label": "Layers below the roofline" },
      ...this.axes(xs, ys, x, y, width), ...this.roof(xs, ys, x, y, width, ridge), ...this.dots(x, y, width));
    this.room.replaceChildren(picture);
  }

  axes(xs, ys, x, y, width) {
    const bottom = HEIGHT - ROOM.bottom;
    const show = (value) => (value >= 1 ? number(value) : String(Number(value.toPrecision(2))));
    return [
      ...ticks(...xs).flatMap((value) => [
        svg("path", { class: "rule", d: `M${x(value)} ${ROOM.top}V${bottom}` }),
        svg("text", { class: "soft", x: x(value), y: bottom + 17, "text-anchor": "middle" }, show(value)),
      ]),
      ...ticks(...ys).flatMap((value) => [
        svg("path", { class: "rule", d: `M${ROOM.left} ${y(value)}H${width - ROOM.right}` }),
        svg("text", { class: "soft", x: ROOM.left - 7, y: y(value) + 4, "text-anchor": "end" }, show(value)),
      ]),
      svg("text", { class: "soft", x: (ROOM.left + width - ROOM.right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "MACs per byte on the bus"),
      svg("text", { class: "soft", transform: `translate(14 ${(ROOM.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "MACs per cycle"),
    ];
  }

  roof(xs, ys, x, y, width, ridge) {
    const { macs_per_cycle: peak, bus_bytes: bus } = this.data;
    const start = Math.max(xs[0], ys[0] / bus);
    const names = [`array: ${number(peak)} per cycle`, `bus: ${number(bus)} bytes per cycle`];
    return [
      svg("path", { class: "roofline", d: `M${x(start)} ${y(start * bus)}L${x(ridge)} ${y(peak)}H${width - ROOM.right}` }),
      svg("text", { x: width - ROOM.right, y: y(peak) - 22, "text-anchor": "end" }, names[0]),
      svg("title", {}, names.join(", ")),
    ];
  }

  dots(x, y, width) {
    const big = [...this.points].sort((a, b) => b.row.cycles - a.row.cycles);
    const named = new Set(big.slice(0, LABELLED));
    const chosen = this.points.find(({ layer }) => layer === selection.values.layer);
    const circles = big.map((point) => {
      const radius = 4 + 10 * Math.sqrt(point.row.cycles / this.most);
      const text = `${point.row.short}: ${number(Number(point.y.toPrecision(3)))} MACs per cycle, ${number(Number(point.x.toPrecision(3)))} per byte, ${number(point.row.cycles)} cycles`;
      return svg("circle", {
        class: point === chosen ? "dot chosen" : "dot", cx: x(point.x), cy: y(point.y), r: radius, "data-layer": point.layer,
        on: {
          click: () => selectLayer(this.data, point.layer),
          pointerenter: () => { this.status.textContent = text; },
          pointerleave: () => { this.status.textContent = HINT; },
        },
      });
    });
    const shown = chosen ? [chosen] : [...named];
    const taken = [];
    const names = shown.flatMap((point) => {
      const right = x(point.x) < width / 2;
      const room = Math.min(right ? width - x(point.x) - ROOM.right : x(point.x) - ROOM.left, NAME.most);
      const box = { from: right ? x(point.x) - 6 : x(point.x) + 6 - room, y: y(point.y) + 30, room };
      // A name that would lie on another one is left out.
      if (taken.some((other) => Math.abs(other.y - box.y) < NAME.tall && box.from < other.from + other.room && other.from < box.from + room)) return [];
      taken.push(box);
      return [svg("text", { class: "dotname", x: right ? box.from : box.from + room, y: box.y, "text-anchor": right ? "start" : "end" },
        fitted(point.row.short, room, FONT))];
    });
    return [...circles, ...names];
  }
}

const HINT = "Each dot is a layer; its area is its cycles. None lies above the array's roof; those above the bus's slope had bytes loaded while other layers computed.";
