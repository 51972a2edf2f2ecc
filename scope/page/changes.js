// What has changed since an older profile.

import { h, table } from "./dom.js";
import { siteLink } from "./findings.js";
import { count, moment, seconds } from "./units.js";

const TITLES = { worse: "Worse", new: "New", better: "Better", gone: "Gone" };

export function changesView(profile, admitted) {
  const { old } = profile;
  const [program = "", ...words] = old.command;
  const numbers = (texts) => texts.map((it) => h("td", { class: "number" }, it));
  const total = ([name, ...values]) =>
    h("tr", null, h("th", { scope: "row" }, name), numbers(values));
  const row = ([site, [name, ...changes]]) =>
    h(
      "tr",
      null,
      h("td", null, site === null ? name : siteLink(profile, site, name)),
      numbers(changes.slice(0, -1)),
      h("td", { class: "where" }, h("code", null, changes.at(-1))),
    );
  const list = ([verdict, number, all]) => {
    const rows = all.filter(([site]) => site === null || admitted[site]);
    if (!rows.length) return null;
    const names = ["site", "peak", "chunks", "bytes", "drag", "score", "waits", "where"];
    const head = table(names, 1, rows.map(row));
    head.classList.add("changes");
    return h(
      "section",
      { "data-verdict": verdict },
      h("h2", null, `${TITLES[verdict]}: ${count(number)}`),
      h("div", { class: "wide" }, head),
      number > all.length ? h("p", { class: "about" }, `The first ${count(all.length)}.`) : null,
    );
  };
  return [
    h(
      "p",
      { class: "about" },
      "Compared with ",
      h("code", null, [program.split("/").pop(), ...words].join(" ")),
      `, a run of ${seconds(old.seconds)}`,
      old.started ? `, started ${moment(old.started)}` : "",
      ". Its curves are dashed. Sites are matched by their functions, then by likeness.",
    ),
    h(
      "div",
      { class: "beside" },
      h("div", null, table(["total", "old", "new", "change"], 1, old.totals.map(total))),
      h("div", null, old.lists.map(list), h("p", { class: "about" }, `${old.same}.`)),
    ),
  ];
}
