// Semaphores: which instruction gave each token, and which took it. Tokens are taken in the order in which they come.

// Numbers of the bits of a mask.
export function bits(mask) {
  const found = [];
  for (let k = 0; mask > 0; k += 1, mask = Math.floor(mask / 2)) if (mask % 2) found.push(k);
  return found;
}

// For each instruction, pairs [semaphore, other instruction]: of whom it took, to whom it gave.
export function tokensOf(launch) {
  if (launch.tokens) return launch.tokens;
  const { takes, gives, start, length } = launch.instructions;
  const given = new Map();
  const taken = new Map();
  const list = (map, key) => map.get(key) ?? map.set(key, []).get(key);
  start.forEach((_, k) => {
    bits(gives[k]).forEach((semaphore) => list(given, semaphore).push(k));
    bits(takes[k]).forEach((semaphore) => list(taken, semaphore).push(k));
  });
  const found = { took: new Map(), gave: new Map() };
  for (const [semaphore, givers] of given) {
    const takers = list(taken, semaphore).sort((a, b) => start[a] - start[b]);
    givers.sort((a, b) => start[a] + length[a] - start[b] - length[b]);
    takers.slice(0, givers.length).forEach((taker, k) => {
      list(found.took, taker).push([semaphore, givers[k]]);
      list(found.gave, givers[k]).push([semaphore, taker]);
    });
  }
  launch.tokens = found;
  return found;
}
