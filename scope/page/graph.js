// Sites whose chunks point to each other.

import { fill, h, svg, table, tip } from "./dom.js";
import { colourOf, inkOn } from "./colours.js";
import { fieldAt, placeOf, typeName } from "./data.js";
import { layers } from "./layers.js";
import { linkTo } from "./state.js";
import { siteLink } from "./findings.js";
import { bytes, count, percent, plural, shortCount } from "./units.js";

// In the drawing; the table has more.
const DRAWN_EDGES = 16;
const MOST_EDGES = 100;
// Parts of the graph that do not touch stand below each other up to this height.
const COLUMN = 1100;
const BOX = { width: 214, height: 46 };
// Beside a label, so that its arrow can bend.
const BEND = 38;
const LABEL = { up: 17, down: 16 };
// From a box to the arc of a pointer to the same site, and from arc to arc.
const LOOP = { first: 32, next: 40 };
// Between the end of an arrow and the tip of its head.
const HEAD = 8;
// Between parts, and around them.
const SPACE = 26;
const LABEL_FONT = "10.5px system-ui, sans-serif";
// A drawing that is wider than the page is made smaller down to this.
const SMALLEST = 0.7;
const SHAPES = {
  list: "List",
  "doubly-linked-list": "Doubly linked list",
  tree: "Tree",
  "tree-with-parents": "Tree with pointers to parents",
  "hash-chain": "Hash chain",
  "b-tree": "B-tree",
  "hash-table": "Hash table",
  deque: "Ring buffer",
  boxes: "Table of boxes",
  shared: "Graph of shared nodes",
};

// Edges between the same sites are one for each field; those of unnamed places are one together.
function merged(profile, admitted) {
  const sums = new Map();
  for (const [from, offset, to, loads, followed, misses] of profile.edges) {
    if (!admitted[from] && !admitted[to]) continue;
    const name = fieldAt(profile, from, offset);
    const key = `${from} ${to} ${name.startsWith("+") ? "" : name}`;
    const sum = sums.get(key) ?? { from, to, names: new Set(), loads: 0, followed: 0, misses: [] };
    sum.names.add(name);
    sum.loads += loads;
    sum.followed += followed;
    misses.forEach((it, i) => {
      sum.misses[i] = (sum.misses[i] ?? 0) + it;
    });
    sums.set(key, sum);
  }
  const nameOf = ({ names }) =>
    names.size > 2 ? plural(names.size, "place") : [...names].join(", ");
  return [...sums.values()]
    .map((it) => ({ ...it, name: nameOf(it) }))
    .sort((a, b) => b.loads - a.loads);
}

// Names of fields, each once.
function fieldsOf(profile, site, offsets) {
  const counts = new Map();
  for (const offset of offsets) {
    const name = fieldAt(profile, site, offset);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, times], i) => [
    i ? ", " : "",
    h("code", null, name),
    times > 1 ? ` (${times} places)` : null,
  ]);
}

function structuresView(profile, admitted) {
  const shown = profile.structures.filter(({ sites }) => sites.some((site) => admitted[site]));
  const item = ({ shape, sites, table, offsets, loads, nodes, bytes: size, walk }) =>
    h(
      "li",
      null,
      h("b", null, SHAPES[shape] ?? shape),
      " of ",
      h("code", null, typeName(profile, sites[0])),
      offsets.length ? [" through ", fieldsOf(profile, sites[0], offsets)] : null,
      ", allocated at ",
      sites.slice(0, 8).map((site, i) => [i ? ", " : "", siteLink(profile, site)]),
      table === null ? null : [", below the table of ", siteLink(profile, table)],
      `; ${plural(loads, "load")} recorded; ${plural(nodes, "chunk")} of ${bytes(size)}`,
      walk.longest > 0
        ? `; walks of ${walk.mean.toFixed(1)} pointers, at most ${walk.longest}`
        : null,
    );
  return shown.length ? h("ul", { class: "structures" }, shown.slice(0, 12).map(item)) : null;
}

// The first level and the last cache below it.
function missColumns(profile) {
  const levels = profile.misses?.levels ?? [];
  const caches = levels.filter((it) => !it.toUpperCase().includes("TLB"));
  const last = caches.length - 1;
  return last > 0
    ? [
        [0, levels[0]],
        [last, levels[last]],
      ]
    : caches.length
      ? [[0, levels[0]]]
      : [];
}

export function graphView(profile, admitted) {
  const all = merged(profile, admitted);
  if (!all.length) {
    return [
      [
        h(
          "p",
          { class: "none" },
          profile.accesses
            ? "No recorded load leads from one chunk to another, as far as the filters show."
            : "Pointers are seen in instrumented programs only.",
        ),
      ],
      [],
    ];
  }
  const edges = all.slice(0, MOST_EDGES);
  const columns = missColumns(profile);
  const rate = (edge, level) =>
    edge.followed ? percent((edge.misses[level] ?? 0) / edge.followed) : "–";
  const element = h("div", {
    class: "graph",
    role: "group",
    "aria-label": "Graph of sites that point to each other; the table below has the same",
  });
  const end = (site) =>
    h(
      "td",
      null,
      siteLink(profile, site),
      " ",
      h("code", null, typeName(profile, site)),
      " ",
      placeOf(profile, site).short,
    );
  const row = (edge) =>
    h(
      "tr",
      null,
      end(edge.from),
      h("td", null, h("code", null, edge.name)),
      end(edge.to),
      h("td", { class: "number" }, shortCount(edge.loads)),
      h("td", { class: "number" }, percent(edge.followed / Math.max(1, edge.loads))),
      columns.map(([level]) => h("td", { class: "number" }, rate(edge, level))),
    );
  const head = [
    "from",
    "field",
    "to",
    "loads",
    "followed",
    ...columns.map(([, name]) => `misses ${name}`),
  ];
  const structures = structuresView(profile, admitted);
  return [
    [
      structures ? [h("h3", null, "Structures"), structures] : null,
      h("h3", null, "Pointers"),
      h(
        "p",
        { class: "about" },
        "An arrow is a field of one site's chunks that leads to another's. Its width is how often the field was loaded in the recorded bursts, its label how often the chunk was then accessed, and how many of these accesses may have missed the first and the last cache. Choose a box to see the site.",
      ),
      element,
      all.length > DRAWN_EDGES
        ? h(
            "p",
            { class: "about" },
            `The ${edges.length} of ${count(all.length)} that are loaded most; the drawing has the first ${DRAWN_EDGES}.`,
          )
        : null,
      h("div", { class: "wide" }, table(head, 3, edges.map(row))),
    ],
    [() => draw(profile, element, edges.slice(0, DRAWN_EDGES), columns, rate)],
  ];
}

// So that a type fits its box.
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Edges by parts of the graph that do not touch.
function partsOf(edges) {
  const up = new Map();
  const find = (site) => (up.has(site) ? find(up.get(site)) : site);
  for (const { from, to } of edges) {
    const [a, b] = [find(from), find(to)];
    if (a !== b) up.set(b, a);
  }
  return Map.groupBy(edges, ({ from }) => find(from)).values();
}

// Where the ends of arrows touch a side of each box, those above first.
function spreadEnds(arrows, boxes) {
  for (const box of boxes) {
    for (const [end, beside] of [
      [0, 1],
      [-1, -2],
    ]) {
      const own = arrows.filter(({ line }) => line.at(end) === box);
      own.sort((a, b) => a.line.at(beside).y - b.line.at(beside).y);
      const step = Math.min(12, (BOX.height - 12) / own.length);
      own.forEach((arrow, i) => {
        arrow[end ? "last" : "first"] = box.y + (i - (own.length - 1) / 2) * step;
      });
    }
  }
}

// The path from the left box to the right one, and a head at one of the ends. `gap` is the room
// between boxes.
function arrowPath({ line, first, last, isBack }, gap) {
  const start = line[0].x + BOX.width / 2;
  const end = line.at(-1).x - BOX.width / 2;
  let [x, y] = [start + (isBack ? HEAD : 0), first];
  let path = `M${x} ${y}`;
  const bend = (toX, toY) => {
    const middle = (x + toX) / 2;
    path += `C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`;
  };
  for (const item of line.slice(1, -1)) {
    const half = item.rank % 2 ? gap / 2 - BEND : BOX.width / 2;
    bend(item.x - half, item.y);
    [x, y] = [item.x + half, item.y];
    path += `H${x}`;
  }
  bend(end - (isBack ? 0 : HEAD), last);
  return [path, isBack ? `M${start} ${first}l10 -5v10z` : `M${end} ${last}l-10 -5v10z`];
}

// The arc above a box of a pointer to the same site, its head, and the height of the arc. `below`
// others are between it and the box.
function loopPath({ x, y }, below) {
  const half = 78 + 7 * Math.min(below, 3);
  const top = y - BOX.height / 2;
  const at = top - LOOP.first - below * LOOP.next;
  return [
    `M${x + half} ${top}V${at + 8}q0 -8 -8 -8H${x - half + 8}q-8 0 -8 8V${top - HEAD}`,
    `M${x - half} ${top}l-5 -10h10z`,
    at,
  ];
}

function labelOf(edge, columns, rate) {
  const followed = percent(edge.followed / Math.max(1, edge.loads));
  const misses = columns.map(([level, name]) => `${name} ${rate(edge, level)}`).join(", ");
  return [
    `${short(edge.name, 24)} · ${followed} followed`,
    edge.followed && misses ? `misses ${misses}` : null,
  ].filter((it) => it);
}

// The label's first line stands on the arrow, at `x` and `y`, and its second below.
function arrowElement(edge, lines, width, [path, head], x, y) {
  const show = (event) => tip(event, ...lines, plural(edge.loads, "load"));
  return svg(
    "g",
    {
      class: "edge",
      "data-from": edge.from,
      "data-to": edge.to,
      onmousemove: show,
      onmouseleave: () => tip(null),
    },
    svg("path", { d: path, "stroke-width": width }),
    svg("path", { class: "head", d: head }),
    lines.map((line, i) => svg("text", { x, y: y + (i ? 13 : -6) }, line)),
  );
}

function boxElement(profile, { site, x, y }) {
  const colour = colourOf(profile.severity[site] < 0 ? null : profile.severity[site]);
  const place = placeOf(profile, site);
  const lines = [`#${site} ${short(typeName(profile, site), 24)}`, short(place.short, 28)];
  return svg(
    "a",
    {
      class: "node",
      "data-site": site,
      href: linkTo({ view: "site", site }),
      onmousemove: (event) => tip(event, place.function, place.where),
      onmouseleave: () => tip(null),
    },
    svg("rect", {
      x: x - BOX.width / 2,
      y: y - BOX.height / 2,
      width: BOX.width,
      height: BOX.height,
      rx: 8,
      fill: colour,
    }),
    lines.map((line, i) => svg("text", { x, y: y - 4 + 15 * i, fill: inkOn(colour) }, line)),
  );
}

function draw(profile, element, edges, columns, rate) {
  const labels = new Map(edges.map((edge) => [edge, labelOf(edge, columns, rate)]));
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = LABEL_FONT;
  const widths = [...labels.values()].flat().map((line) => pen.measureText(line).width);
  const gap = Math.max(...widths) + 2 * BEND + 10;
  const most = Math.log1p(edges[0].loads);
  const arrow = (edge, ...more) =>
    arrowElement(edge, labels.get(edge), 1 + 4 * (Math.log1p(edge.loads) / most), ...more);

  const [arrows, boxes] = [[], []];
  let [left, top, right, low] = [0, 0, 0, 0];
  for (const own of partsOf(edges)) {
    const loops = own.filter(({ from, to }) => from === to);
    const sizeOf = (site) => {
      const number = loops.filter(({ from }) => from === site).length;
      const room = number ? LOOP.first + (number - 1) * LOOP.next + LABEL.up : 0;
      return { up: BOX.height / 2 + room, down: BOX.height / 2 };
    };
    const part = layers(own, sizeOf, LABEL);
    if (top > 0 && top + part.height > COLUMN) [left, top] = [right + 2 * SPACE, 0];
    for (const item of part.items) {
      item.x = left + BOX.width / 2 + (item.rank / 2) * (BOX.width + gap);
      item.y += top;
      right = Math.max(right, item.x + BOX.width / 2);
    }
    spreadEnds(part.arrows, part.boxes);
    for (const it of part.arrows) {
      arrows.push(arrow(it.edge, arrowPath(it, gap), it.line[1].x, it.line[1].y));
    }
    for (const box of part.boxes) {
      boxes.push(boxElement(profile, box));
      loops
        .filter(({ from }) => from === box.site)
        .forEach((edge, i) => {
          const [path, head, y] = loopPath(box, i);
          arrows.push(arrow(edge, [path, head], box.x, y));
        });
    }
    top += part.height + SPACE;
    low = Math.max(low, top);
  }
  const [width, height] = [right + 2 * SPACE, low + SPACE];
  fill(
    element,
    svg(
      "svg",
      {
        viewBox: `${-SPACE} ${-SPACE} ${width} ${height}`,
        style: { width: `${width}px`, "min-width": `${SMALLEST * width}px` },
      },
      arrows,
      boxes,
    ),
  );
}
