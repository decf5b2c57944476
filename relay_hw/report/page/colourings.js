// What boxes of a network can be coloured by: for each a share from 0 to 1, a text, what it says, and where it is known.

import { number } from "./dom.js";

// Decibels of signal over noise at which a tensor is as good as without noise.
const CLEAN = 40;

const NOISE = {
  name: "noise",
  legend: `Signal to quantization noise of each tensor, on samples held back from calibration: full colour at 0 dB, none at ${CLEAN} dB.`,
  share: (_, node) => Math.min(Math.max(1 - node.noise_db / CLEAN, 0), 1),
  text: (_, node) => `${node.noise_db.toFixed(1)} dB`,
  has: (_, node) => node.noise_db !== undefined,
};

const WHERE = {
  name: "where",
  legend: "Blue borders: on the accelerator; brown: on the host.",
  share: () => 0,
  text: (_, node) => node.where,
  has: () => true,
};

function lostOf(row) {
  return Object.values(row.stalls).reduce((a, b) => a + b, 0);
}

export function buildColourings(rows) {
  const most = Math.max(...rows.map((row) => row.cycles ?? 0), 1);
  const worst = Math.max(...rows.map(lostOf), 1);
  return {
    cycles: {
      name: "cycles",
      legend: "The stronger the colour, the more cycles, relative to the longest layer.",
      share: (row) => row.cycles / most, text: (row) => number(row.cycles), has: (row) => row?.cycles > 0,
    },
    lost: {
      name: "lost cycles",
      legend: "The stronger the colour, the more cycles without products, relative to the layer that loses most.",
      share: (row) => lostOf(row) / worst, text: (row) => number(lostOf(row)),
      has: (row) => row?.cycles > 0 && Object.keys(row.stalls).length > 0,
    },
    noise: NOISE,
    where: WHERE,
  };
}

// `side`: which of the two builds a network is of.
export function differenceColourings(pairs, side) {
  const most = Math.max(...pairs.map((pair) => Math.abs(pair.gained)), 1);
  const slowest = Math.max(...pairs.map((pair) => pair.cycles[side]), 1);
  const signed = (cycles) => `${cycles > 0 ? "+" : ""}${number(cycles)}`;
  return {
    change: {
      name: "change",
      legend: "Green: fewer cycles in B, red: more; the stronger the colour, the larger the change. Dashed: in one build only.",
      share: (pair) => Math.abs(pair.gained) / most, text: (pair) => (pair.gained ? signed(-pair.gained) : "="),
      has: (pair) => pair?.cycles.a > 0 || pair?.cycles.b > 0, kind: (pair) => (pair?.gained > 0 ? "gain" : "loss"),
    },
    cycles: {
      name: "cycles",
      legend: "The stronger the colour, the more cycles, relative to this build's longest layer.",
      share: (pair) => pair.cycles[side] / slowest, text: (pair) => number(pair.cycles[side]), has: (pair) => pair?.cycles[side] > 0,
    },
    noise: NOISE,
    where: WHERE,
  };
}
