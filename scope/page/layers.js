// Where the boxes and arrows of a small graph stand: in layers from left to right. Only arrows that
// close a cycle point back. An arrow's label stands between two layers and takes room there, so
// that it covers nothing.

const GAP = 14;
const ROUNDS = 12;

// Layers of boxes have even numbers, those of labels odd ones. Of an arrow, `at` and `to` are the
// boxes on its left and on its right: other ends than its own where it points back.
function ranked(edges) {
  const after = new Map(edges.flatMap(({ from, to }) => [from, to]).map((site) => [site, []]));
  edges.forEach(({ from, to }) => from !== to && after.get(from).push(to));
  const entered = new Set();
  const done = [];
  // A box is done after all that it leads to: what leads to one that is not done closes a cycle.
  const back = new Set();
  const visit = (site) => {
    entered.add(site);
    for (const to of after.get(site)) {
      if (!entered.has(to)) visit(to);
      else if (!done.includes(to)) back.add(`${site} ${to}`);
    }
    done.push(site);
  };
  const inner = new Set(edges.filter(({ from, to }) => from !== to).map(({ to }) => to));
  const sites = [...after.keys()];
  for (const site of [...sites.filter((it) => !inner.has(it)), ...sites]) {
    if (!entered.has(site)) visit(site);
  }
  const arrows = edges
    .filter(({ from, to }) => from !== to)
    .map((edge) =>
      back.has(`${edge.from} ${edge.to}`)
        ? { edge, at: edge.to, to: edge.from }
        : { edge, at: edge.from, to: edge.to },
    );
  const rank = new Map(sites.map((site) => [site, 0]));
  for (const site of done.toReversed()) {
    for (const { at, to } of arrows) {
      if (at === site) rank.set(to, Math.max(rank.get(to), rank.get(at) + 2));
    }
  }
  // What nothing leads to stands beside what it leads to.
  for (const site of sites.filter((it) => arrows.every(({ to }) => to !== it))) {
    const next = arrows.filter(({ at }) => at === site).map(({ to }) => rank.get(to));
    if (next.length) rank.set(site, Math.min(...next) - 2);
  }
  return { arrows, rank };
}

// Gives the items of a layer the places nearest to those that they want, in the sum of squares,
// without an overlap (pool-adjacent-violators).
function settle(layer) {
  let room = 0;
  const pools = [];
  layer.forEach((item, i) => {
    room += i ? layer[i - 1].down + GAP + item.up : 0;
    item.room = room;
    pools.push({ items: [item], mean: item.wanted - room });
    while (pools.length > 1 && pools.at(-2).mean > pools.at(-1).mean) {
      const [a, b] = pools.splice(-2);
      const items = [...a.items, ...b.items];
      const mean = (a.mean * a.items.length + b.mean * b.items.length) / items.length;
      pools.push({ items, mean });
    }
  });
  for (const { items, mean } of pools) for (const item of items) item.y = mean + item.room;
}

// All `items` of a graph whose parts touch, with `rank` and `y`: the `boxes`, and those of the
// lines of the `arrows`. A `line` goes from box to box over the arrow's label, and over what keeps
// its place in layers that it passes. `sizeOf` says how far a site's box goes up and down, `label`
// how far a label does.
export function layers(edges, sizeOf, label) {
  const { arrows, rank } = ranked(edges);
  const items = [];
  const add = (item) => {
    items.push({ ...item, y: 0, before: [], after: [] });
    return items.at(-1);
  };
  const boxes = new Map();
  for (const [site, at] of rank) boxes.set(site, add({ site, rank: at, ...sizeOf(site) }));
  for (const arrow of arrows) {
    const [first, last] = [boxes.get(arrow.at), boxes.get(arrow.to)];
    arrow.isBack = arrow.at !== arrow.edge.from;
    arrow.line = [first];
    for (let at = first.rank + 1; at < last.rank; at++) {
      const size = at === first.rank + 1 ? label : { up: 5, down: 5 };
      arrow.line.push(add({ rank: at, ...size }));
    }
    arrow.line.push(last);
    arrow.line.slice(1).forEach((item, i) => {
      item.before.push(arrow.line[i]);
      arrow.line[i].after.push(item);
    });
  }
  const all = Array.from({ length: Math.max(...rank.values()) + 1 }, (_, at) =>
    items.filter((item) => item.rank === at),
  );
  // Each layer follows the one before it, then the one after it, and at last both.
  for (let round = 0; round < ROUNDS; round++) {
    const isBoth = round >= ROUNDS - 4;
    for (const layer of round % 2 ? all.toReversed() : all) {
      for (const item of layer) {
        const near = [
          ...(isBoth || round % 2 === 0 ? item.before : []),
          ...(isBoth || round % 2 === 1 ? item.after : []),
        ];
        const sum = near.reduce((sum, it) => sum + it.y, 0);
        item.wanted = near.length ? sum / near.length : item.y;
      }
      layer.sort((a, b) => a.wanted - b.wanted);
      settle(layer);
    }
  }
  const top = Math.min(...items.map((item) => item.y - item.up));
  for (const item of items) item.y -= top;
  const height = Math.max(...items.map((item) => item.y + item.down));
  return { boxes: [...boxes.values()], arrows, items, height };
}
