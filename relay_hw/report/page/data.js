// The page's data: plain values as JSON, long columns of integers as deflated bytes (packed.py wrote them).

// An integer of each group of bytes whose last one is below 128, the lowest bits first, signs in the lowest bit.
function readColumn(bytes, { begin, count, differ }) {
  const found = new Float64Array(count);
  let at = begin;
  let sum = 0;
  for (let k = 0; k < count; k += 1) {
    let value = 0;
    let weight = 1;
    let byte;
    do {
      byte = bytes[at];
      at += 1;
      value += (byte & 127) * weight;
      weight *= 128;
    } while (byte > 127);
    value = value % 2 ? -(value + 1) / 2 : value / 2;
    sum = differ ? sum + value : value;
    found[k] = sum;
  }
  return found;
}

async function inflated(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Replaces what stands for a column, wherever it is, by the column.
function withColumns(value, bytes) {
  if (Array.isArray(value)) return value.map((part) => withColumns(part, bytes));
  if (value === null || typeof value !== "object") return value;
  if ("differ" in value) return readColumn(bytes, value);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withColumns(part, bytes)]));
}

// Ends of stretches, bands of stretches of one layer, and instructions by unit, which the columns imply.
function withIndex(launch, data) {
  const { spent, instructions } = launch;
  const ends = new Float64Array(spent.length.length);
  const bands = { begin: [], end: [], layer: [] };
  let cycle = 0;
  spent.length.forEach((length, k) => {
    if (!k || spent.layer[k] !== spent.layer[k - 1]) {
      bands.begin.push(cycle);
      bands.end.push(cycle);
      bands.layer.push(spent.layer[k]);
    }
    cycle += length;
    ends[k] = cycle;
    bands.end[bands.end.length - 1] = cycle;
  });
  const units = data.units.map(() => []);
  instructions.op.forEach((op, k) => units[data.ops[op].unit]?.push(k));
  return { ...launch, ends, bands, units };
}

export async function readData() {
  const plain = JSON.parse(document.getElementById("data").textContent);
  const bytes = await inflated(document.getElementById("columns").textContent);
  const data = withColumns(plain, bytes);
  data.launches = data.launches.map((launch) => withIndex(launch, data));
  return data;
}
