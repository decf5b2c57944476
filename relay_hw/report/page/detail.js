// What is selected, in words: the layer's place and why, its figures, scales and noise, its lines in Relay and the model.

import { el, number, percent, plainOperator } from "./dom.js";
import { selection } from "./state.js";
import { tokensOf } from "./tokens.js";

const MOST_CAUSES = 5;

export class Detail {
  constructor(data, timeline) {
    this.data = data;
    this.timeline = timeline;
    this.node = el("div", { class: "detail", "aria-live": "polite", tabindex: 0, role: "region", "aria-label": "The selected layer" });
    selection.watch(() => this.fill());
    this.fill();
  }

  fill() {
    const { layer, instruction, node } = selection.values;
    const nodes = this.data.graph?.nodes ?? [];
    const found = layer >= 0 ? nodes.filter((one) => one.layer === layer) : nodes.filter((_, k) => k === node);
    const row = this.data.layers[layer];
    if (!row && !found.length) {
      this.node.replaceChildren(el("p", {}, "Nothing selected: click a box, a bar, a dot or a row, or press the arrow keys in a view."));
      return;
    }
    const lines = [...(row ? this.figures(row) : []), ...found.flatMap((one) => this.tensor(one))];
    if (instruction >= 0) lines.push(["instruction", this.instruction(instruction)]);
    const items = lines.filter(([, text]) => text).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]);
    this.node.replaceChildren(el("h3", {}, row?.name ?? found[0].name), el("dl", {}, ...items), ...found.flatMap((one) => sources(one)));
  }

  figures(row) {
    const lost = Object.entries(row.stalls).filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1]).slice(0, MOST_CAUSES);
    const causes = lost.map(([cause, cycles]) => `${cause} ${number(cycles)} (${percent(cycles / row.cycles)})`);
    return [
      ["runs on", row.function ? `${row.where}, in @${row.function}` : row.where],
      ["reason", row.reason],
      ["operator", `${plainOperator(row.operator)} ${row.shape}`],
      ["cycles", row.where === "host" ? "" : `${number(row.cycles)}, at least ${number(row.roofline_cycles)}`],
      ["lost cycles", causes.join(", ")],
      ["MACs", row.macs ? `${number(row.macs)}, array ${percent(row.utilisation)}` : ""],
      ["bytes", row.bytes.total ? `${number(row.bytes.total)}: read ${number(row.bytes.read)}, written ${number(row.bytes.written)}` : ""],
    ];
  }

  tensor(node) {
    const scale = node.scale === undefined ? "" : `${Number(node.scale.toPrecision(6))}, zero point ${node.zero_point}`;
    return [
      ["result", `${node.shape ?? ""} ${node.dtype ?? ""}`.trim()],
      ["scale", scale],
      ["signal to noise", node.noise_db === undefined ? "" : `${node.noise_db.toFixed(1)} dB`],
    ];
  }

  instruction(k) {
    const launch = this.timeline.launch();
    const { took, gave } = tokensOf(launch);
    const name = (other) => `${this.data.ops[launch.instructions.op[other]].name} #${other}`;
    const pairs = (word, list) => (list ?? []).map(([semaphore, other]) => `s${semaphore} ${word} ${name(other)}`).join(", ");
    const tokens = [pairs("from", took.get(k)), pairs("to", gave.get(k))].filter(Boolean).join("; ");
    return `${this.timeline.instructionText(launch, k)}${tokens ? `; ${tokens}` : ""}`;
  }
}

// Names of the model's file, and lines of 0_imported.relay.
function sources(node) {
  const parts = [];
  if (node.names) parts.push(el("h4", {}, "In the model"), el("p", { class: "code" }, node.names.join("\n")));
  if (node.relay) {
    const lines = node.relay.map((line) => `${line.number}: ${line.text}`).join("\n");
    parts.push(el("h4", {}, "In 0_imported.relay"), el("p", { class: "code" }, lines));
  }
  return parts;
}
