// Sites whose chunks point to each other: laid out by dagre, drawn by Cytoscape.

import { h, tip, table } from "./dom.js";
import { colourOf, css, inkOn } from "./colours.js";
import { fieldAt, placeOf, typeName } from "./data.js";
import { set } from "./state.js";
import { siteLink } from "./findings.js";
import { bytes, count, percent, plural, shortCount } from "./units.js";

// In the drawing; the table has more.
const DRAWN_EDGES = 16;
const MOST_EDGES = 100;
// Parts of the graph that do not touch stand below each other up to this height.
const COLUMN = 1100;
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
    role: "img",
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

// Where each site stands: parts that do not touch are laid out one by one.
function positions(edges) {
  const part = new Map();
  const find = (site) => {
    const up = part.get(site) ?? site;
    return up === site ? site : find(up);
  };
  edges.forEach(({ from, to }) => {
    const [a, b] = [find(from), find(to)];
    part.set(from, part.get(from) ?? from);
    part.set(to, part.get(to) ?? to);
    part.set(b, a);
  });
  const parts = new Map();
  edges.forEach((edge) => {
    const key = find(edge.from);
    parts.set(key, [...(parts.get(key) ?? []), edge]);
  });
  const places = new Map();
  let [left, top, widest] = [0, 0, 0];
  for (const own of parts.values()) {
    const layout = new dagre.graphlib.Graph({ multigraph: true });
    layout.setGraph({ rankdir: "LR", nodesep: 40, ranksep: 170, edgesep: 20 });
    layout.setDefaultEdgeLabel(() => ({}));
    own.forEach(({ from, to }, i) => {
      for (const site of [from, to]) layout.setNode(String(site), { width: 200, height: 46 });
      if (from !== to) layout.setEdge(String(from), String(to), {}, String(i));
    });
    dagre.layout(layout);
    // A pointer to the same site is an arc above it.
    const room = own.some(({ from, to }) => from === to) ? 70 : 0;
    const { width, height } = layout.graph();
    if (top > 0 && top + height + room > COLUMN) [left, top, widest] = [left + widest + 90, 0, 0];
    for (const node of layout.nodes()) {
      const { x, y } = layout.node(node);
      places.set(Number(node), { x: left + x, y: top + room + y });
    }
    const loops = own.filter(({ from, to }) => from === to).map(({ from }) => from);
    top += height + room + (new Set(loops).size < loops.length ? 100 : 44);
    widest = Math.max(widest, width);
  }
  return places;
}

function draw(profile, element, edges, columns, rate) {
  const places = positions(edges);
  const sites = [...places.keys()];
  const [right, low] = ["x", "y"].map((at) =>
    Math.max(...[...places.values()].map((place) => place[at])),
  );
  const scale = Math.min(1, element.clientWidth / (right + 150));
  element.style.height = `${Math.max(180, scale * (low + 80))}px`;
  const most = Math.log1p(edges[0].loads);
  const nodes = sites.map((site) => {
    const colour = colourOf(profile.severity[site] < 0 ? null : profile.severity[site]);
    const label = `#${site} ${short(typeName(profile, site), 24)}\n${short(placeOf(profile, site).short, 28)}`;
    return {
      data: { id: `s${site}`, site, label, colour, ink: inkOn(colour) },
      position: places.get(site),
    };
  });
  const loops = new Map();
  const arrows = edges.map((edge, i) => {
    const misses = !edge.followed
      ? ""
      : columns.map(([level, name]) => `${name} ${rate(edge, level)}`).join(", ");
    const label = `${short(edge.name, 24)} · ${percent(edge.followed / Math.max(1, edge.loads))} followed${misses ? `\nmisses ${misses}` : ""}`;
    // Pointers to the same site are arcs on different sides of it.
    const loop = edge.from === edge.to ? (loops.get(edge.from) ?? 0) : 0;
    if (edge.from === edge.to) loops.set(edge.from, loop + 1);
    return {
      data: {
        loop: ["0deg", "180deg", "-90deg", "90deg"][loop % 4],
        id: `e${i}`,
        source: `s${edge.from}`,
        target: `s${edge.to}`,
        label,
        width: 1 + 4 * (Math.log1p(edge.loads) / most),
        loads: edge.loads,
      },
    };
  });
  const graph = cytoscape({
    container: element,
    elements: [...nodes, ...arrows],
    layout: { name: "preset", fit: true, padding: 24 },
    minZoom: 0.1,
    maxZoom: 2.5,
    autoungrabify: false,
    boxSelectionEnabled: false,
    style: [
      {
        selector: "node",
        style: {
          shape: "round-rectangle",
          width: 200,
          height: 46,
          label: "data(label)",
          "background-color": "data(colour)",
          color: "data(ink)",
          "text-wrap": "wrap",
          "text-valign": "center",
          "text-halign": "center",
          "font-size": 11,
          "font-family": "system-ui, sans-serif",
          "border-width": 1,
          "border-color": css("muted"),
        },
      },
      {
        selector: "edge",
        style: {
          width: "data(width)",
          label: "data(label)",
          "curve-style": "bezier",
          "control-point-step-size": 56,
          "target-arrow-shape": "triangle",
          "line-color": css("edge"),
          "target-arrow-color": css("edge"),
          "font-size": 10,
          "font-family": "system-ui, sans-serif",
          color: css("ink"),
          "text-wrap": "wrap",
          "text-background-color": css("paper"),
          "text-background-opacity": 0.85,
          "text-background-padding": 2,
          "loop-direction": "data(loop)",
          "loop-sweep": "-60deg",
        },
      },
    ],
  });
  graph.on("tap", "node", (event) => set({ view: "site", site: event.target.data("site") }));
  graph.on("mouseover", "node", ({ target, originalEvent }) =>
    tip(
      originalEvent,
      placeOf(profile, target.data("site")).function,
      placeOf(profile, target.data("site")).where,
    ),
  );
  graph.on("mouseover", "edge", ({ target, originalEvent }) =>
    tip(originalEvent, ...target.data("label").split("\n"), plural(target.data("loads"), "load")),
  );
  graph.on("mouseout", () => tip(null));
  if (graph.zoom() > 1.2) graph.zoom(1.2).center();
  element.graph = graph;
}
