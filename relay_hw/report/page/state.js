// What is selected and which cycles are shown: every view reads these, and is told of changes.

function store(values) {
  const watchers = [];
  return {
    values,
    set(changes) {
      if (Object.entries(changes).every(([key, value]) => values[key] === value)) return;
      Object.assign(values, changes);
      watchers.forEach((tell) => tell(values));
    },
    watch(tell) {
      watchers.push(tell);
    },
  };
}

// `layer`, `instruction` and `node`: numbers, -1 of none; `launch`: whose timeline and maps are shown; `colour`: of the
// graph. Several nodes may share a layer, or have none: `node` is the one that was meant.
export const selection = store({ layer: -1, instruction: -1, node: -1, launch: 0, colour: "cycles" });

// Cycles [from, to) of the launch.
export const range = store({ from: 0, to: 1 });

// Selects a layer, in the launch where it runs.
export function selectLayer(data, layer, changes = {}) {
  const row = data.layers[layer];
  const launch = row ? data.launches.findIndex((one) => one.function === row.function) : -1;
  selection.set({ layer, instruction: -1, node: -1, ...(launch >= 0 ? { launch } : {}), ...changes });
}

// The layer so many places behind the selected one among `layers`.
function nextLayer(layers, step) {
  const at = layers.indexOf(selection.values.layer);
  if (at < 0) return layers[step > 0 ? 0 : layers.length - 1];
  return layers[Math.min(Math.max(at + step, 0), layers.length - 1)];
}

// Arrow keys on a view select the layers that it has, in its order.
export function selectByKeys(node, data, layers, keys = { next: "ArrowDown", before: "ArrowUp" }) {
  node.addEventListener("keydown", (event) => {
    const step = { [keys.next]: 1, [keys.before]: -1 }[event.key];
    const all = layers();
    if (!step || !all.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    selectLayer(data, nextLayer(all, step));
  });
}
