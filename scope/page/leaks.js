// What nothing led to any more at the end, by site.

import { h, table } from "./dom.js";
import { siteLink, whereCell } from "./findings.js";
import { bytes, count, plural, shortCount } from "./units.js";

// Sites that a row names as leading to its own.
const NAMED = 3;

// Which sites have pointers to a leaked one, or variables, with most of them first.
function leaders(profile, site) {
  const { links } = profile.leaks;
  const [number, first] = links[site] ?? [0, []];
  if (!number) return "nothing";
  const named = first.slice(0, NAMED).map(([from, pointers], i) => [
    i ? ", " : "",
    from === null ? "variables" : from === site ? "itself" : siteLink(profile, from),
    ` (${shortCount(pointers)})`,
  ]);
  return number > NAMED ? [named, ", …"] : named;
}

export function leaksView(profile, admitted) {
  const { all, sites, number } = profile.leaks;
  const [directBytes, directChunks, indirectBytes, indirectChunks] = all;
  const rows = sites.filter(([site]) => admitted[site]);
  const row = ([site, ...sums]) => {
    const end = [profile.col["site.end_usable"][site], profile.col["site.end_chunks"][site]];
    const cells = [...sums, ...end].map((it, i) => (i % 2 ? shortCount(it) : bytes(it)));
    return h(
      "tr",
      { "data-site": site },
      h("td", null, siteLink(profile, site)),
      cells.map((it) => h("td", { class: "number" }, it)),
      h("td", null, leaders(profile, site)),
      whereCell(profile, site),
    );
  };
  const names = [
    "site",
    "leaked",
    "chunks",
    "indirect",
    "chunks",
    "at the end",
    "chunks",
    "led to by",
    "where and type",
  ];
  const element = table(names, 1, rows.map(row));
  element.classList.add("sites", "leaks");
  return [
    h(
      "p",
      { class: "about" },
      `${bytes(directBytes)} in ${plural(directChunks, "chunk")} that nothing led to when the program ended`,
      indirectChunks
        ? `, and ${bytes(indirectBytes)} in ${plural(indirectChunks, "chunk")} that only leaked ones led to (indirect)`
        : "",
      ". Led to by: the pointers to chunks of the site in others at the end, which may be leaked, too, ",
      "and in variables, stacks and registers.",
    ),
    rows.length
      ? h("div", { class: "wide" }, element)
      : h("p", { class: "none" }, number ? "No site leaks, as far as the filters show." : "No chunk is leaked."),
    number > sites.length ? h("p", { class: "about" }, `The first ${count(sites.length)}.`) : null,
  ];
}
