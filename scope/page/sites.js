// All sites that the filters admit, as a table.

import { h } from "./dom.js";
import { colourOf, inkOn } from "./colours.js";
import { scoresOf } from "./data.js";
import { set, state } from "./state.js";
import { siteLink, whereCell } from "./findings.js";
import { byteSeconds, bytes, percent, score, seconds, shortCount } from "./units.js";

// At once, and with each choice of more.
const ROWS = 50;

const best = (value) => (value === null ? 2 : value);
// Head, explanation, what a row shows, and what it is sorted by: the largest first.
const COLUMNS = {
  peak: [
    "at peak",
    "Bytes at the peak of the process",
    (p, s) => bytes(p.col["site.at_peak_usable"][s]),
    (p, s) => p.col["site.at_peak_usable"][s],
  ],
  bytes: [
    "in all",
    "Bytes in the whole run",
    (p, s) => bytes(p.col["site.usable"][s]),
    (p, s) => p.col["site.usable"][s],
  ],
  allocations: [
    "chunks",
    "Allocations in the whole run",
    (p, s) => shortCount(p.col["site.allocations"][s]),
    (p, s) => p.col["site.allocations"][s],
  ],
  lifetime: [
    "life",
    "Lifetime score: low if chunks come and go",
    (p, s) => cell(scoresOf(p, s).life),
    (p, s) => -best(scoresOf(p, s).life),
  ],
  usage: [
    "use",
    "Usage score: low if bytes are not used",
    (p, s) => cell(scoresOf(p, s).usage),
    (p, s) => -best(scoresOf(p, s).usage),
  ],
  "useful-lifetime": [
    "useful",
    "Useful-lifetime score: low if chunks wait or idle",
    (p, s) => cell(scoresOf(p, s).useful),
    (p, s) => -best(scoresOf(p, s).useful),
  ],
  severity: [
    "mean",
    "Geometric mean of the scores",
    (p, s) => cell(scoresOf(p, s).all),
    (p, s) => -best(scoresOf(p, s).all),
  ],
  drag: [
    "drag",
    "Bytes times seconds after the last access",
    (p, s) => byteSeconds(p.col["site.drag"][s]),
    (p, s) => p.col["site.drag"][s],
  ],
  accesses: [
    "accesses",
    "Reads and writes",
    (p, s) => shortCount(p.col["site.reads"][s] + p.col["site.writes"][s]),
    (p, s) => p.col["site.reads"][s] + p.col["site.writes"][s],
  ],
  misses: [
    "waits",
    "Simulated time of waiting for memory",
    (p, s) => (p.waits[s] ? seconds(p.waits[s] / 1e9) : ""),
    (p, s) => p.waits[s],
  ],
};

// Those that the profile knows.
export const columnsOf = (profile) =>
  Object.entries(COLUMNS).filter(([key]) => {
    if (["lifetime", "severity"].includes(key)) return profile.isScored;
    if (["usage", "useful-lifetime", "drag", "accesses"].includes(key)) return profile.accesses;
    return key !== "misses" || profile.misses;
  });

function cell(value) {
  const colour = colourOf(value);
  return h(
    "span",
    { class: "score", style: { background: colour, color: inkOn(colour) } },
    score(value),
  );
}

function savings(profile) {
  if (profile.savings) return profile.savings;
  profile.savings = new Float64Array(profile.sites);
  profile.firstFinding = new Map();
  for (const finding of profile.findings) {
    const [site, , , , , share] = finding;
    profile.savings[site] = Math.max(profile.savings[site], share);
    if (!profile.firstFinding.has(site)) profile.firstFinding.set(site, finding);
  }
  return profile.savings;
}

// What sites are sorted by: the largest first.
const keysOf = { sort: null, keys: null };
function keys(profile) {
  if (keysOf.sort === state.sort) return keysOf.keys;
  const saving = savings(profile);
  const by = COLUMNS[state.sort]?.[3] ?? ((_, site) => saving[site]);
  const all = new Float64Array(profile.sites);
  for (let site = 0; site < profile.sites; site++) all[site] = by(profile, site);
  Object.assign(keysOf, { sort: state.sort, keys: all });
  return all;
}

// The first `most` admitted sites in the order of the state, and how many there are.
export function sorted(profile, admitted, most = Infinity) {
  const key = keys(profile);
  const peak = profile.col["site.at_peak_usable"];
  const order = (a, b) => key[b] - key[a] || peak[b] - peak[a] || a - b;
  let found = [];
  let number = 0;
  let last = -1;
  for (let site = 0; site < profile.sites; site++) {
    if (!admitted[site]) continue;
    number += 1;
    // Most sites are behind the last that is shown: they cost a comparison.
    if (last >= 0 && order(site, last) > 0) continue;
    found.push(site);
    if (found.length >= 4 * most) {
      found = found.sort(order).slice(0, most);
      last = found[most - 1];
    }
  }
  return [found.sort(order).slice(0, most), number];
}

export function sitesView(profile, admitted) {
  const [sites, number] = sorted(profile, admitted, ROWS);
  const columns = columnsOf(profile);
  const head = (key, [text, title]) =>
    h(
      "th",
      { scope: "col", class: "number", "aria-sort": state.sort === key ? "descending" : "none" },
      h(
        "button",
        {
          type: "button",
          title,
          "data-key": key,
          onclick: () => set({ sort: state.sort === key ? "saving" : key }),
        },
        text,
        state.sort === key ? " ▾" : "",
      ),
    );
  const row = (site) => {
    const finding = profile.firstFinding.get(site);
    return h(
      "tr",
      { "data-site": site },
      h("td", { class: "number" }, siteLink(profile, site)),
      columns.map(([, [, , show]]) => h("td", { class: "number" }, show(profile, site))),
      whereCell(profile, site, finding ? h("div", { class: "why" }, finding[2]) : null),
    );
  };
  const body = h("tbody", null, sites.map(row));
  let shown = ROWS;
  const more = h(
    "button",
    {
      type: "button",
      onclick: () => {
        body.append(
          ...sorted(profile, admitted, 4 * shown)[0]
            .slice(shown)
            .map(row),
        );
        shown *= 4;
        if (shown >= number) more.remove();
      },
    },
    "More",
  );
  return [
    h(
      "p",
      { class: "about" },
      `${number.toLocaleString("en-US")} of ${profile.sites.toLocaleString("en-US")} sites (${percent(number / Math.max(1, profile.sites))}). ` +
        "A site is an allocation point: one whole call stack. Choose a column to sort by it; without, the largest saving comes first.",
    ),
    h(
      "div",
      { class: "wide" },
      h(
        "table",
        { class: "sites" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "site"),
            columns.map(([key, it]) => head(key, it)),
            h("th", { scope: "col" }, "where, type and first finding"),
          ),
        ),
        body,
      ),
    ),
    number > ROWS ? more : null,
  ];
}
