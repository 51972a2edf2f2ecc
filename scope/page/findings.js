// What is wrong and what to try, in words: the first view.

import { h } from "./dom.js";
import { colourOf } from "./colours.js";
import { libraryOf, placeOf, scoresOf, typeName } from "./data.js";
import { linkTo } from "./state.js";
import { bytes, percent, plural } from "./units.js";

// What a kind is called, and why it costs.
const KINDS = {
  "never-touched": ["Never touched", "Memory is reserved, and the program uses none of it."],
  "never-read": ["Written, never read", "Filling the bytes takes time, and nobody looks at them."],
  "never-written": ["Read, never written", "Copies of what never changes could be one."],
  "partly-used": [
    "Partly used",
    "Bytes that nobody uses fill cache lines beside those that are used.",
  ],
  reserved: ["Reserved too much", "The capacity is larger than what is stored."],
  "late-free": ["Freed late", "The chunks are held after their last access."],
  "early-allocation": ["Allocated early", "The chunks wait long for their first access."],
  growth: ["Grows step by step", "Each step allocates, copies and frees."],
  temporary: [
    "Temporary",
    "The chunk is freed before its thread allocates another, again and again.",
  ],
  "same-size": ["Realloc in vain", "The chunk has the size already that is asked for."],
  moved: ["Moved", "Realloc copies the bytes to another place."],
  capacity: ["Capacity beyond the length", "Every vector of the site has room that none uses."],
  churn: ["Allocated and freed by the million", "The allocator takes much of the time."],
  waits: ["Waits for memory", "The processor waits for the pointers that lead to these chunks."],
  leaked: ["Leaked", "Nothing led to the chunks any more when the program ended."],
  "steady-growth": [
    "Grows all the time",
    "What comes at one pace and stays takes all memory in the end.",
  ],
  "large-future": ["Large future", "Each holds the memory of its largest local all its life."],
  "false-sharing": [
    "False sharing",
    "Threads write different bytes of one cache line, which travels between their cores.",
  ],
};

// The line of a package that allocates, and the line that calls it.
const linesOf = (profile, site) => {
  const library = libraryOf(profile, site);
  const { where } = placeOf(profile, site);
  return library ? `${library.where} < ${where}` : where;
};

export const siteName = (profile, site) => {
  const place = placeOf(profile, site);
  return `${place.short} ${linesOf(profile, site)}`;
};

export const siteLink = (profile, site, text) =>
  h(
    "a",
    {
      href: linkTo({ view: "site", site }),
      title: placeOf(profile, site).function,
    },
    text ?? `#${site}`,
  );

// The last column of tables of sites: where, what, and perhaps more.
export const whereCell = (profile, site, more = null) => {
  const place = placeOf(profile, site);
  return h(
    "td",
    { class: "where" },
    siteLink(profile, site, place.short),
    " ",
    h("code", null, place.where),
    h("div", { class: "type" }, h("code", null, typeName(profile, site))),
    more,
  );
};

export const swatch = (severity) =>
  h("span", {
    class: "swatch",
    style: { background: colourOf(severity) },
    title: severity === null ? "no score" : `mean of scores ${severity.toFixed(2)}`,
  });

function item(profile, { site, title, why, sentence, share, of }) {
  const place = placeOf(profile, site);
  const scores = scoresOf(profile, site);
  return h(
    "li",
    { class: "finding" },
    h(
      "div",
      { class: "cost" },
      h("b", null, percent(share)),
      h("span", { class: "of" }, of),
      h("span", { class: "bar" }, h("span", { style: { width: `${Math.max(1, share * 100)}%` } })),
    ),
    h(
      "div",
      null,
      h("h3", null, swatch(scores.all), " ", siteLink(profile, site, `${title}: ${place.short}`)),
      h(
        "p",
        { class: "where" },
        h("code", null, linesOf(profile, site)),
        " · ",
        h("code", { class: "type" }, typeName(profile, site)),
        ` · site #${site}`,
      ),
      h("p", null, sentence),
      why ? h("p", { class: "why" }, why) : null,
    ),
  );
}

export const findingItem = (profile, [site, kind, sentence, , , share, part]) => {
  const [title, why] = KINDS[kind] ?? [kind, ""];
  const of = part.slice(part.indexOf("of"));
  return item(profile, { site, title, why, sentence: `${capital(sentence)}.`, share, of });
};

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const waitItem = (profile, { site, share, sentence, fields }) => {
  const last = Math.max(0, (profile.misses.levels.length ?? 1) - 1);
  const worst = [...fields].sort((a, b) => b[3][0] - a[3][0] || b[3][last] - a[3][last])[0];
  const field = worst?.[1] && worst[3][0] > 0 ? ` Most of them at field ${worst[1]}.` : "";
  return item(profile, {
    site,
    title: "Waits for memory",
    share,
    of: "of the time",
    sentence: `${capital(sentence)}.${field}`,
    why: null,
  });
};

export function findingsView(profile, admitted) {
  const wastes = profile.findings.filter(([site]) => admitted[site]);
  const waits = (profile.misses?.waits ?? []).filter(
    ({ site, share }) => admitted[site] && share >= profile.misses.minShare,
  );
  const untouched = profile.gaps
    .filter(([site]) => admitted[site])
    .map(([site, gap], i) => [i ? ", " : "", siteLink(profile, site), ` ${bytes(gap)}`]);
  const list = (title, about, items, none) =>
    h(
      "section",
      { class: "list" },
      h("h2", null, title),
      h("p", { class: "about" }, about),
      items.length ? h("ol", { class: "findings" }, items) : h("p", { class: "none" }, none),
    );
  const machine = profile.misses
    ? `Simulated from ${profile.misses.complete ? "all accesses" : `${plural(profile.misses.windows, "burst")} of accesses (${profile.misses.recorded})`} on ${profile.misses.machine}. Try: place together what is used together, make elements smaller, follow fewer pointers.`
    : "Nothing was recorded to simulate: the program is not instrumented, or rate was 0.";
  return [
    profile.caveats.map((text) => h("p", { class: "note" }, text)),
    h(
      "div",
      { class: "two" },
      list(
        "What wastes memory and time",
        "The part that each would save at most, the largest first; what the system may use comes later.",
        wastes.slice(0, 60).map((it) => findingItem(profile, it)),
        "No site wastes much, as far as the filters show.",
      ),
      profile.isOurs
        ? list(
            "What the program waits for",
            machine,
            waits.slice(0, 30).map((it) => waitItem(profile, it)),
            "No site waits long for memory, as far as is known.",
          )
        : null,
    ),
    untouched.length
      ? h("p", { class: "note" }, "Allocated and not touched at the peak: ", untouched, ".")
      : null,
  ];
}
