// The flame graph of sites: a box for each frame.

import { choice, fill, h, tip } from "./dom.js";
import { MARKED, STEPS, UNKNOWN, colourOf, inkOn } from "./colours.js";
import { METRICS, chosenTime, valuesOf } from "./filter.js";
import { fromPlaces, fromRoot, sitesBelow } from "./tree.js";
import { set, state } from "./state.js";
import { siteLink, siteName, swatch } from "./findings.js";
import { byteSeconds, bytes, count, percent, seconds } from "./units.js";

const ROW = 20;
// In a narrower frame, a name would say nothing.
const NARROWEST_NAME = 35;
const UNITS = { bytes, byteSeconds, count, ns: (ns) => seconds(ns / 1e9) };
export const worth = (metric, value) => UNITS[METRICS[metric].unit](value);

const legend = () =>
  h(
    "span",
    { class: "legend" },
    h("span", null, "score 0, bad "),
    STEPS.map((colour, i) =>
      h("i", {
        style: { background: colour },
        title: `${(i / 12).toFixed(2)} to ${((i + 1) / 12).toFixed(2)}`,
      }),
    ),
    h("span", null, " 1, good "),
    h("i", { style: { background: UNKNOWN } }),
    " unknown",
  );

const kept = { element: null, detail: null, admitted: null, total: 0 };
let chosen = null;
// What is drawn, a caller before its callees: `{ data, up, children, element }`.
let frames = [];

export const FORMS = { icicle: "Callers on top", flame: "Callers below" };

// Those that the profile knows.
export const metricsOf = (profile) =>
  Object.entries(METRICS)
    .filter(([key]) => key !== "misses" || profile.misses)
    .filter(([key]) => key !== "at" || profile.seconds)
    .filter(([key]) => key !== "drag" || profile.accesses)
    .map(([key, it]) => [key, it.name, it.title]);

export function flameView(profile) {
  const at = chosenTime(profile, state);
  const slider =
    state.metric === "at"
      ? h(
          "label",
          { class: "slider" },
          "at ",
          h("input", {
            type: "range",
            min: 0,
            max: profile.seconds,
            step: profile.seconds / 1000 || 1,
            value: at,
            "aria-label": "Time in seconds",
            oninput: (event) => set({ at: event.target.value }),
          }),
          h("output", null, seconds(at)),
        )
      : null;
  const search = h("input", {
    type: "search",
    id: "search",
    placeholder: "mark functions",
    value: state.search,
    "aria-label": "Mark functions in the graph",
    spellcheck: "false",
    oninput: (event) => set({ search: event.target.value }),
  });
  const bar = h(
    "div",
    { class: "bar" },
    choice("width", metricsOf(profile), state.metric, (metric) => set({ metric })),
    slider,
    choice(
      "form",
      Object.entries(FORMS).map(([key, title]) => [key, key, title]),
      state.form,
      (form) => set({ form }),
    ),
    choice(
      "root",
      [
        ["", "process", "From main to the allocations"],
        ["1", "inverted", "From the places that allocate to their callers"],
      ],
      state.callers,
      (callers) => set({ callers, zoom: "" }),
    ),
    search,
    h(
      "button",
      { type: "button", id: "unzoom", onclick: () => set({ zoom: "" }), disabled: !state.zoom },
      "Show all",
    ),
  );
  const graph = h("div", {
    class: "flame",
    tabindex: 0,
    role: "application",
    "aria-label": "Flame graph. Arrow keys choose a frame, Enter zooms, Escape shows all.",
  });
  const detail = h("div", { class: "detail", "aria-live": "polite" });
  Object.assign(kept, { element: graph, detail });
  graph.addEventListener("keydown", (event) => key(event, profile));
  graph.addEventListener("click", (event) => {
    const frame = frameAt(event);
    if (!frame) return;
    choose(profile, frame);
    zoomTo(frame.data);
  });
  graph.addEventListener("mousemove", (event) => {
    const data = frameAt(event)?.data;
    if (data) tip(event, data.frame?.function ?? data.name, data.frame?.where, share(data));
    else tip(null);
  });
  graph.addEventListener("mouseleave", () => tip(null));
  return [bar, profile.isScored ? legend() : null, graph, detail].filter((it) => it);
}

const frameAt = (event) => frames[event.target.closest(".frame")?.dataset.at];

const share = (data) => {
  const severity = data.severity === null ? "" : `, score ${data.severity.toFixed(2)}`;
  return `${worth(state.metric, data.value)}, ${percent(data.value / (kept.total || 1))}${severity}`;
};

function zoomTo(data) {
  const zoom = typeof data.id === "number" ? data.id : data.id.slice(2);
  set({ zoom: zoom || "" });
}

// The tree below a path of inverted frames, with what is above it.
function below(tree, path) {
  let top = tree;
  const above = [];
  for (const id of path.split(".").filter((it) => it)) {
    const next = top.children.find((it) => it.id.endsWith(`.${id}`));
    if (!next) break;
    above.push(top);
    top = next;
  }
  return above.reduceRight(
    (node, up) => ({ ...up, value: node.value, children: [node], above: true }),
    top,
  );
}

// What is to be done so that the graph is drawn again, a frame's work each; the elements around it
// stay.
// `ask` gives the admitted sites.
export function flameTasks(profile, ask) {
  let tree;
  return [
    () => {
      tree = treeOf(profile, ask());
    },
    () => drawTree(profile, tree),
  ];
}

function treeOf(profile, admitted) {
  kept.admitted = admitted;
  const values = valuesOf(profile, state);
  kept.total = 0;
  for (let site = 0; site < profile.sites; site++) if (admitted[site]) kept.total += values[site];
  return state.callers
    ? below(fromPlaces(profile, admitted, values), state.zoom)
    : fromRoot(profile, admitted, values, Number(state.zoom) || 0);
}

function drawTree(profile, tree) {
  const { element } = kept;
  document.getElementById("unzoom").disabled = !state.zoom;
  if (!tree.value) {
    frames = [];
    element.style.height = "";
    fill(element, h("p", { class: "none" }, "No site matches the filters."));
    fill(kept.detail);
    return;
  }
  const width = element.clientWidth || 900;
  const wanted = state.search.toLowerCase();
  frames = [];
  let depth = 0;
  const visit = (data, up, row, left) => {
    depth = Math.max(depth, row + 1);
    const part = data.value / tree.value;
    const isMarked = wanted && (data.frame?.function ?? data.name).toLowerCase().includes(wanted);
    const colour = isMarked ? MARKED : colourOf(data.severity);
    const names = ["frame", data.above && "above", isMarked && "marked"];
    const box = h(
      "div",
      {
        class: names.filter((it) => it).join(" "),
        "data-at": frames.length,
        style: {
          left: `${left * 100}%`,
          width: `${part * 100}%`,
          [state.form === "icicle" ? "top" : "bottom"]: `${row * ROW}px`,
          background: colour,
          color: inkOn(colour),
        },
      },
      part * width < NARROWEST_NAME ? null : data.name,
    );
    const frame = { data, up, children: [], element: box };
    up?.children.push(frame);
    frames.push(frame);
    let at = left;
    for (const child of data.children) {
      visit(child, frame, row + 1, at);
      at += child.value / tree.value;
    }
  };
  visit(tree, null, 0, 0);
  element.style.height = `${depth * ROW}px`;
  fill(
    element,
    frames.map((it) => it.element),
  );
  const again = frames.find(({ data }) => data.id === chosen?.id);
  again?.element.classList.add("chosen");
  describe(profile, again?.data ?? chosen ?? tree);
}

function choose(profile, frame) {
  for (const it of frames) it.element.classList.toggle("chosen", it === frame);
  chosen = frame.data;
  describe(profile, chosen);
}

// Says what the chosen frame is, and which sites are below it.
function describe(profile, data) {
  const values = valuesOf(profile, state);
  const sites =
    typeof data.id === "number"
      ? sitesBelow(profile, kept.admitted, values, data.id, 12)
      : data.sites.slice(0, 12);
  const row = (site) =>
    h(
      "li",
      null,
      swatch(profile.severity[site] < 0 ? null : profile.severity[site]),
      " ",
      siteLink(profile, site),
      ` ${siteName(profile, site)}: ${worth(state.metric, values[site])}`,
    );
  fill(
    kept.detail,
    h(
      "p",
      null,
      h("b", null, data.frame?.function ?? data.name),
      " ",
      h("code", null, data.frame?.where ?? ""),
      ` ${share(data)}`,
    ),
    h("ul", { class: "plain" }, sites.map(row)),
  );
}

function key(event, profile) {
  const at = frames.find(({ data }) => data.id === chosen?.id) ?? frames[0];
  if (!at) return;
  const beside = (step) => at.up?.children[at.up.children.indexOf(at) + step];
  const isDown = state.form === "icicle";
  const next = {
    [isDown ? "ArrowDown" : "ArrowUp"]: at.children[0],
    [isDown ? "ArrowUp" : "ArrowDown"]: at.up,
    ArrowLeft: beside(-1),
    ArrowRight: beside(1),
  };
  if (event.key in next) {
    event.preventDefault();
    event.stopPropagation();
    if (next[event.key]) choose(profile, next[event.key]);
  } else if (event.key === "Enter") zoomTo(at.data);
  else if (event.key === "Escape" && state.zoom) {
    event.stopPropagation();
    set({ zoom: "" });
  }
}
