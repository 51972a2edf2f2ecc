// Functions and spans with what they touch: a graph by footprint, the chosen one, and a table.

import { h, table, tip } from "./dom.js";
import { box, curves, stepped } from "./charts.js";
import { toSeconds } from "./data.js";
import { set } from "./state.js";
import { bytes, percent, plural, shortCount } from "./units.js";

// Rows of the table, and the least width of a box in the graph, as a part of the whole.
const ROWS = 100;
const LEAST = 0.002;

const mean = (region) => region.bytes / Math.max(1, region.invocations);

// Boxes as [region, left, width, depth]. A call's footprint is part of its caller's; where those of
// siblings overlap, their widths are shortened until they fit beside each other.
function layout(regions) {
  const children = regions.map(() => []);
  const roots = [];
  regions.forEach((region, i) => (region.parent < 0 ? roots : children[region.parent]).push(i));
  const boxes = [];
  const place = (list, left, width, size, depth) => {
    const sizes = list.map((i) => mean(regions[i]));
    const whole = Math.max(
      size,
      sizes.reduce((sum, it) => sum + it, 0),
    );
    let at = left;
    list.forEach((i, n) => {
      const own = whole > 0 ? (width * sizes[n]) / whole : 0;
      if (own >= LEAST) {
        boxes.push([i, at, own, depth]);
        place(children[i], at, own, sizes[n], depth + 1);
      }
      at += own;
    });
  };
  place(roots, 0, 1, 0, 0);
  return boxes;
}

// The smallest cache that holds what a call touches.
const fitOf = ({ caches }, region) => {
  const size = (region.blocks * 64) / Math.max(1, region.invocations);
  if (size === 0) return [0, "-"];
  const found = caches.findIndex(([, most]) => size <= most);
  return found < 0 ? [caches.length, "none"] : [found, caches[found][0]];
};

function graph(all) {
  const boxes = layout(all.list);
  const depth = boxes.reduce((most, it) => Math.max(most, it[3]), 0);
  const element = ([i, left, width, row]) => {
    const region = all.list[i];
    const [fit, cache] = fitOf(all, region);
    const lines = [
      region.name,
      `${bytes(mean(region))} a call, at most ${bytes(region.most)}; fits ${cache}`,
      plural(region.invocations, "call"),
    ];
    return h(
      "button",
      {
        type: "button",
        class: `region fit${Math.min(fit, 3)}`,
        "aria-label": lines.join(", "),
        style: {
          left: `${left * 100}%`,
          width: `${width * 100}%`,
          top: `${row * 20}px`,
        },
        onclick: () => set({ region: i }),
        onmousemove: (event) => tip(event, ...lines),
        onmouseleave: () => tip(null),
      },
      region.name,
    );
  };
  return h(
    "div",
    { class: "regions", style: { height: `${(depth + 1) * 20}px` } },
    boxes.map(element),
  );
}

// Facts of one region; the task draws its growth.
function chosenView(profile, all, region) {
  const calls = Math.max(1, region.invocations);
  const facts = [
    ["where", region.place || "unknown"],
    ["calls", shortCount(region.invocations) + (region.recursive ? `, and ${shortCount(region.recursive)} within` : "")],
    ["a call touches", `${bytes(mean(region))}, at most ${bytes(region.most)}`],
    ["in lines of 64 B", shortCount(region.blocks / calls)],
    ["in pages of 4 KiB", shortCount(region.pages / calls)],
    ["fits", fitOf(all, region)[1]],
    ["known to the caller", percent(region.reused / Math.max(1, region.bytes))],
    ["new to the thread", percent(region.fresh / Math.max(1, region.bytes))],
    ["reads, writes", `${shortCount(region.reads)}, ${shortCount(region.writes)}`],
    ["allocations", `${shortCount(region.allocations)} of ${bytes(region.allocated)}`],
    [
      "calls by footprint",
      region.footprints.map(([bits, count]) => `${shortCount(count)} below ${bytes(2 ** bits)}`).join("; "),
    ],
  ];
  const element = box("Bytes that became part of a footprint, over time");
  const draw = () => {
    const xs = region.growth.map((_, i) => toSeconds(profile, Math.max(1, i * region.step)));
    curves(element, [xs, region.growth], [stepped("new bytes", "touched")], { height: 120 });
  };
  return [
    [
      h("h3", null, h("code", null, region.name)),
      h(
        "dl",
        { class: "facts" },
        facts.map(([name, it]) => [h("dt", null, name), h("dd", null, it)]),
      ),
      element,
    ],
    region.growth.length > 1 ? [draw] : [],
  ];
}

export function regionsView(profile, chosen) {
  const all = profile.regions;
  const order = all.list.map((_, i) => i).sort((a, b) => all.list[b].most - all.list[a].most);
  const first = chosen === "" || !all.list[Number(chosen)] ? order[0] : Number(chosen);
  const [content, draws] = chosenView(profile, all, all.list[first]);
  const row = (i) => {
    const region = all.list[i];
    const calls = Math.max(1, region.invocations);
    const cells = [
      bytes(mean(region)),
      bytes(region.most),
      shortCount(region.blocks / calls),
      fitOf(all, region)[1],
      shortCount(region.invocations),
      percent(region.reused / Math.max(1, region.bytes)),
      shortCount(region.reads),
      shortCount(region.writes),
    ];
    const name = h("button", { type: "button", class: "link", "data-key": i, onclick: () => set({ region: i }) }, region.name);
    return h(
      "tr",
      { "aria-selected": i === first ? "true" : null },
      h("td", null, name),
      cells.map((it) => h("td", { class: "number" }, it)),
    );
  };
  const caches = all.caches.map(([name, size]) => `${name} ${bytes(size)}`).join(", ");
  return [
    [
      h(
        "ul",
        { class: "findings" },
        all.findings.map(([label, text]) => h("li", null, h("b", null, label), ": ", text)),
      ),
      h(
        "p",
        { class: "note" },
        `Each box is a function or span below its caller; its width is what a call of it touches. Callees often share bytes: then their boxes are shortened to fit. Colours say which cache holds a call: ${caches || "caches are not known"}.`,
      ),
      graph(all),
      content,
      table(["region", "mean", "largest", "lines", "fits", "calls", "known", "reads", "writes"], 1, ...order.slice(0, ROWS).map(row)),
      order.length > ROWS ? h("p", { class: "note" }, `${ROWS} of ${plural(order.length, "region")}.`) : null,
    ],
    draws,
  ];
}
