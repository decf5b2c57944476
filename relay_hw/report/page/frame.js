// A canvas over the cycles of a launch: axis, zoom and pan by pointer, wheel and keys; views draw rows into it.

import { el, number, roundStep } from "./dom.js";
import { colour, watchLook } from "./colours.js";
import { range } from "./state.js";

export const FONT = "12px system-ui, sans-serif";
const AXIS = 22;
const RIGHT = 8;
const LEAST = 16;
const CLICK = 4;

// Shows [from, to), moved and widened to what the launch has.
export function show(launch, from, to) {
  const length = Math.min(Math.max(to - from, LEAST), launch.cycles);
  const begin = Math.min(Math.max(from, 0), launch.cycles - length);
  range.set({ from: begin, to: begin + length });
}

export function zoom(launch, factor, at = 0.5) {
  const { from, to } = range.values;
  const middle = from + at * (to - from);
  show(launch, middle - (middle - from) * factor, middle + (to - middle) * factor);
}

export function pan(launch, share) {
  const step = share * (range.values.to - range.values.from);
  show(launch, range.values.from + step, range.values.to + step);
}

const KEYS = {
  "+": (launch) => zoom(launch, 0.5),
  "=": (launch) => zoom(launch, 0.5),
  "-": (launch) => zoom(launch, 2),
  ArrowLeft: (launch) => pan(launch, -0.2),
  ArrowRight: (launch) => pan(launch, 0.2),
  Home: (launch) => show(launch, 0, launch.cycles),
};

// `view` has: label, height(), draw(place), told(cycle, y) -> text, click(cycle, y), launch().
export class Frame {
  constructor(view) {
    this.view = view;
    this.canvas = el("canvas", { role: "img", "aria-label": view.label });
    this.band = el("div", { class: "band", hidden: true });
    this.node = el("div", { class: "frame", tabindex: 0, role: "group", "aria-label": `${view.label}. ${HELP}` });
    this.node.append(this.canvas, this.band);
    this.status = el("p", { class: "status", "aria-live": "off" }, HINT);
    this.waiting = false;
    this.listen();
    new ResizeObserver(() => this.later()).observe(this.node);
    range.watch(() => this.later());
    watchLook(() => this.draw());
    window.addEventListener("beforeprint", () => this.draw());
  }

  // Room at the left for names of rows.
  get left() {
    return this.node.clientWidth < 600 ? 70 : 78;
  }

  get width() {
    return Math.max(this.node.clientWidth - this.left - RIGHT, 1);
  }

  // Many changes in one frame of the screen are drawn once.
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const { canvas, view } = this;
    const ratio = Math.max(window.devicePixelRatio, 1);
    const [width, height] = [this.node.clientWidth, AXIS + view.height()];
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = FONT;
    const { from, to } = range.values;
    const place = { context, left: this.left, width: this.width, top: AXIS, from, to, scale: this.width / (to - from) };
    this.axis(place, height);
    view.draw(place);
  }

  axis({ context, left, width, from, to, scale }, height) {
    const step = roundStep((to - from) / Math.max(Math.floor(width / 110), 2));
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (let cycle = Math.ceil(from / step) * step; cycle <= to; cycle += step) {
      const x = left + (cycle - from) * scale;
      context.fillStyle = colour("line");
      context.fillRect(Math.round(x), AXIS - 5, 1, height);
      const text = number(cycle);
      const half = context.measureText(text).width / 2;
      context.fillStyle = colour("soft");
      context.fillText(text, Math.min(Math.max(x, left + half), left + width - half), 9);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left - this.left) / this.width, 0), 1);
    const { from, to } = range.values;
    return { share, cycle: from + share * (to - from), y: event.clientY - box.top - AXIS, x: event.clientX - box.left };
  }

  listen() {
    let start = null;
    const { node, band } = this;
    node.addEventListener("pointerdown", (event) => {
      if (event.button === 0) start = this.at(event);
    });
    node.addEventListener("pointermove", (event) => {
      const here = this.at(event);
      if (start && Math.abs(here.x - start.x) > CLICK) {
        node.setPointerCapture(event.pointerId);
        band.hidden = false;
        band.style.left = `${Math.min(here.x, start.x)}px`;
        band.style.width = `${Math.abs(here.x - start.x)}px`;
      }
      this.status.textContent = this.view.told(here.cycle, here.y) || HINT;
    });
    node.addEventListener("pointerup", (event) => {
      const here = this.at(event);
      if (start && !band.hidden) show(this.view.launch(), Math.min(start.cycle, here.cycle), Math.max(start.cycle, here.cycle));
      else if (start) this.view.click(here.cycle, here.y);
      start = null;
      band.hidden = true;
    });
    node.addEventListener("pointercancel", () => {
      start = null;
      band.hidden = true;
    });
    node.addEventListener("pointerleave", () => {
      if (!start) this.status.textContent = HINT;
    });
    node.addEventListener("dblclick", () => KEYS.Home(this.view.launch()));
    node.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    node.addEventListener("keydown", (event) => {
      const run = KEYS[event.key];
      if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      run(this.view.launch());
    });
  }

  // With Ctrl the wheel zooms, sideways it moves; else the page scrolls.
  wheel(event) {
    if (event.ctrlKey) zoom(this.view.launch(), event.deltaY > 0 ? 1.25 : 0.8, this.at(event).share);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(this.view.launch(), event.deltaX / 1000);
    else return;
    event.preventDefault();
  }
}

const HELP = "Plus and minus zoom, left and right move, Home shows all, up and down select layers";
const HINT = "Drag or Ctrl and wheel to zoom, double-click to show all, click to select a layer.";

// The name of a row, at the left of it.
export function rowName({ context, left }, text, middle) {
  context.fillStyle = colour("soft");
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText(text, left - 8, middle);
}
