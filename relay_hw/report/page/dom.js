// Elements and texts. Whatever is shown goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    } else if (value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// An element of HTML; `on` among the attributes holds listeners by event.
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

// An element of SVG.
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// `label` begins with the text, where that is a word: who speaks it means the button.
export function button(text, label, run) {
  return el("button", { type: "button", "aria-label": label, title: label, on: { click: run } }, text);
}

// Thousands separated, as the text of a profile has them.
export function number(value) {
  return value === null || value === undefined ? "-" : value.toLocaleString("en-US");
}

export function percent(value) {
  return value === null || value === undefined ? "-" : `${(100 * value).toFixed(1)}%`;
}

const ruler = document.createElement("canvas").getContext("2d");

export function textWidth(text, font) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

// A text in so many pixels of a font: of a longer one the end, where names differ. Nothing where hardly a letter fits.
export function fitted(text, room, font) {
  if (textWidth(text, font) <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ruler.measureText(`…${text.slice(-middle)}`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low < LEAST_LETTERS ? "" : `…${text.slice(-low)}`;
}

const LEAST_LETTERS = 2;

// What of an operator's name tells it from others.
export function plainOperator(name) {
  return name.replace(/^(accel|nn|qnn)\./, "");
}

// The first place of an ascending column whose value is above `value`.
export function above(column, value, low = 0, high = column.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The smallest 1, 2 or 5 times a power of ten that is at least `least`.
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}
