// Everything about one site.

import { choice, h, table } from "./dom.js";
import { box, curves, distribution, stepped } from "./charts.js";
import { colourOf, inkOn } from "./colours.js";
import { beforeOf, fieldAt, placeOf, scoresOf, stackOf, toSeconds, typeName } from "./data.js";
import { blocksView } from "./blocks.js";
import { bytesView } from "./bytes.js";
import { findingItem, siteLink, siteName, waitItem } from "./findings.js";
import {
  byteSeconds,
  bytes,
  count,
  percent,
  plural,
  score,
  seconds,
  shortCount,
  were,
} from "./units.js";

const MARKS = [
  "in the top tenth by bytes",
  "in the top tenth by chunks",
  "sizes grow from chunk to chunk",
  "allocated in a loop",
  "grows step by step",
  "used for a short part of its life",
];

function number(profile, name, site) {
  return profile.col[`site.${name}`][site];
}

// Each score with the reason for it.
function scoresView(profile, site) {
  const scores = scoresOf(profile, site);
  const n = (name) => number(profile, name, site);
  const chunks = n("allocations");
  const row = (name, value, why) => {
    const colour = colourOf(value);
    return h(
      "tr",
      null,
      h("th", { scope: "row" }, name),
      h(
        "td",
        null,
        h(
          "span",
          { class: "score", style: { background: colour, color: inkOn(colour) } },
          score(value),
        ),
      ),
      h("td", null, why),
    );
  };
  const unknown = "Not known: the program is not instrumented.";
  const part = (of) => percent(of / Math.max(1, chunks));
  const uses = [`${bytes(n("touched_bytes"))} of ${bytes(n("requested"))} touched`];
  if (n("untouched_chunks")) uses.push(`${part(n("untouched_chunks"))} of the chunks never touched`);
  if (n("unread_chunks")) uses.push(`${part(n("unread_chunks"))} written and never read`);
  if (n("unwritten_chunks")) uses.push(`${part(n("unwritten_chunks"))} read and never written`);
  return h(
    "table",
    { class: "scores" },
    h(
      "tbody",
      null,
      row(
        "lifetime",
        scores.life,
        scores.life === null
          ? "Not known."
          : `A chunk lives for ${percent(scores.life)} of the time of the chunks that are allocated close to it.`,
      ),
      row("usage", scores.usage, scores.usage === null ? unknown : `${uses.join(", ")}.`),
      row(
        "useful lifetime",
        scores.useful,
        scores.useful === null
          ? unknown
          : `${percent(scores.useful)} of a chunk's life lies between its first and its last access: ${byteSeconds(n("wait"))} of waiting before, ${byteSeconds(n("drag"))} of drag after.`,
      ),
      row("mean", scores.all, "The geometric mean, which gives the colour. 1 is best."),
    ),
  );
}

// What has changed since the older profile.
function changeOf(profile, site) {
  const about = ["at the peak", "chunks", "in all", "of drag"];
  for (const [verdict, , rows] of profile.old?.lists ?? []) {
    const numbers = rows.find(([of]) => of === site)?.[1].slice(1, 5);
    const texts = numbers?.map((it, i) => (it === "0" || it === "-" ? "" : `${it} ${about[i]}`));
    if (texts) return [["change", `${verdict}: ${texts.filter((it) => it).join(", ")}`]];
  }
  return [];
}

function facts(profile, site) {
  const n = (name) => number(profile, name, site);
  const sizes =
    n("largest") === n("smallest")
      ? bytes(n("smallest"))
      : `${bytes(n("smallest"))} to ${bytes(n("largest"))}`;
  const at = (time) => seconds(toSeconds(profile, time));
  const second = (events) => `${shortCount(events)} events`;
  const [shortest, longest] = [n("shortest_life"), n("longest_life")];
  const life = n("lifetime") / Math.max(1, n("allocations"));
  const mean = second(life);
  // Files of other tools have sums alone.
  const lives =
    life > longest
      ? `${mean} on average`
      : shortCount(shortest) === shortCount(longest)
        ? mean
        : `${shortCount(shortest)} to ${second(longest)}, ${shortCount(life)} on average`;
  const threads = profile.threads
    .filter((_, i) => i < 200)
    .map(([id]) => id)
    .filter((id) => {
      const bit = Math.min(63, id);
      return (bit < 32 ? n("threadsLow") / 2 ** bit : n("threadsHigh") / 2 ** (bit - 32)) % 2 >= 1;
    });
  const rows = [
    [
      "chunks",
      `${count(n("allocations"))} of ${sizes}; ${count(n("peak_chunks"))} at most at a time, ${count(n("end_chunks"))} at the end`,
    ],
    [
      "bytes",
      `${bytes(n("usable"))} in all; ${bytes(n("peak_usable"))} at most${profile.seconds ? `, at ${at(n("peak_time"))}` : ""}; ${bytes(n("at_peak_usable"))} at the program's peak; ${bytes(n("end_usable"))} at the end`,
    ],
    ["lives", lives],
    profile.accesses
      ? ["accesses", `${shortCount(n("reads"))} reads, ${shortCount(n("writes"))} writes`]
      : null,
    n("temporary")
      ? ["temporary", `${were(n("temporary"))} freed before the thread allocated another`]
      : null,
    n("reallocs")
      ? [
          "realloc",
          `${plural(n("reallocs"), "call")}, ${bytes(n("moved_bytes"))} moved; one chunk was grown ${plural(n("longest_chain"), "time")}`,
        ]
      : null,
    n("shared_chunks") ? ["shared", `${were(n("shared_chunks"))} accessed by several threads`] : null,
    ...changeOf(profile, site),
    profile.rules[site] ? ["rule", profile.rules[site]] : null,
    threads.length
      ? ["threads", threads.slice(0, 20).join(", ") + (threads.length > 20 ? ", …" : "")]
      : null,
    ["marks", MARKS.filter((_, i) => (n("marks") / 2 ** i) % 2 >= 1).join(", ") || "none"],
  ];
  return h(
    "dl",
    { class: "facts" },
    rows.filter((it) => it).map(([name, text]) => [h("dt", null, name), h("dd", null, text)]),
  );
}

function stackView(profile, site) {
  const place = placeOf(profile, site);
  const frames = stackOf(profile, site).map((frame) => {
    const snippet = profile.snippets[frame.id];
    const isPlace = frame.id === place.id;
    const head = [
      h("code", { class: isPlace ? "own" : "" }, frame.function),
      " ",
      h("code", { class: "type" }, frame.where),
      frame.inlined ? h("small", null, " inlined") : null,
    ];
    if (!snippet) return h("li", null, head);
    const [first, lines] = snippet;
    return h(
      "li",
      null,
      h(
        "details",
        isPlace ? { open: true } : null,
        h("summary", null, head),
        h(
          "pre",
          { class: "source" },
          lines.map((line, i) =>
            h(
              "span",
              { class: first + i === frame.line ? "line here" : "line" },
              `${String(first + i).padStart(6)}  ${line}\n`,
            ),
          ),
        ),
      ),
    );
  });
  return h("ol", { class: "stack" }, frames);
}

function missesView(profile, site) {
  const found = profile.misses?.waits.find((it) => it.site === site);
  if (!found) return null;
  const { levels } = profile.misses;
  const range = ({ low, high }) =>
    Math.round(low) === Math.round(high) ? count(low) : `${count(low)}–${count(high)}`;
  const fields = found.fields
    .filter(([, , recorded]) => recorded > 0)
    .sort((a, b) => b[3][0] - a[3][0])
    .slice(0, 12);
  return [
    h(
      "p",
      { class: "about" },
      `The program waits for it ${percent(found.share)} of its time, some ${seconds(found.ns / 1e9)}. Between these bounds, of 1,000 accesses:`,
    ),
    h(
      "div",
      { class: "wide" },
      table(
        ["", ...levels],
        1,
        h(
          "tr",
          null,
          h("th", { scope: "row" }, "misses in 1,000"),
          found.per1000.map((it) => h("td", { class: "number" }, range(it))),
        ),
        h(
          "tr",
          null,
          h("th", { scope: "row" }, "in the run"),
          found.misses.map((it) => h("td", { class: "number" }, shortCount(it.estimate))),
        ),
        fields.map(([offset, name, recorded, possible]) =>
          h(
            "tr",
            null,
            h(
              "th",
              { scope: "row" },
              h("code", null, name ?? `+${offset}`),
              ` in ${plural(recorded, "recorded access").replace("accesss", "accesses")}`,
            ),
            possible.map((it) => h("td", { class: "number" }, count(it))),
          ),
        ),
      ),
    ),
  ];
}

function pointersView(profile, site) {
  const near = profile.edges.filter(([from, , to]) => from === site || to === site).slice(0, 16);
  if (!near.length) return null;
  return h(
    "ul",
    { class: "plain" },
    near.map(([from, offset, to, loads, followed]) =>
      h(
        "li",
        null,
        from === site
          ? [
              "field ",
              h("code", null, fieldAt(profile, from, offset)),
              " leads to ",
              to === site ? "the same site" : [siteLink(profile, to), ` ${siteName(profile, to)}`],
            ]
          : [
              "reached from ",
              siteLink(profile, from),
              ` ${siteName(profile, from)}, field `,
              h("code", null, fieldAt(profile, from, offset)),
            ],
        `: ${plural(loads, "load")}, ${percent(followed / Math.max(1, loads))} followed`,
      ),
    ),
  );
}

function pairs(profile, name, site) {
  const { starts, col } = profile;
  const found = [];
  for (let i = starts[name][site]; i < starts[name][site + 1]; i++) {
    found.push([col[`${name}.bits`][i], col[`${name}.count`][i]]);
  }
  return found;
}

// The site's part of all bytes.
function curveView(profile, site, span) {
  const { starts, col } = profile;
  const series = (name, from, to, part) => {
    const xs = [];
    const ys = [];
    for (let i = from; i < to; i++) {
      xs.push(toSeconds(profile, col[`${name}.time`][i]));
      ys.push(col[`${name}.${part}`][i]);
    }
    // It holds to the end.
    const end = toSeconds(profile, col["curve.time"].at(-1));
    if (ys.at(-1) > 0 && xs.at(-1) < end) {
      xs.push(end);
      ys.push(ys.at(-1));
    }
    return [xs, ys];
  };
  const own = [starts.curves[site], starts.curves[site + 1]];
  if (own[0] === own[1]) return null;
  const tables = [
    series("curve", 0, col["curve.time"].length, "peak"),
    series("curves", ...own, "peak"),
  ];
  const lines = [
    stepped("all sites", "faint"),
    stepped("this site", "allocated", { fill: "#4f7bd533", width: 2 }),
  ];
  if (profile.old) {
    tables.push(beforeOf(profile, "befores", site));
    lines.push(stepped("before", "before", { dash: [4, 3] }));
  }
  if (profile.accesses) {
    tables.push(series("curves", ...own, "touched"));
    lines.push(stepped("touched", "touched"));
  }
  const element = box("Bytes of the site over time");
  const draw = () => curves(element, uPlot.join(tables), lines, { height: 170, range: span });
  return { element, draw };
}

const section = (title, content) =>
  content ? h("section", null, h("h3", null, title), content) : null;

// Elements, and what draws the charts once these are in the document.
export function siteView(profile, site, span, zoomed, setZoomed) {
  if (!(site >= 0 && site < profile.sites)) {
    return [
      [h("p", { class: "none" }, `There is no site #${site}: choose one from the sites.`)],
      [],
    ];
  }
  const place = placeOf(profile, site);
  const scores = scoresOf(profile, site);
  const life = [number(profile, "first_time", site), profile.ends[site]].map((it) =>
    toSeconds(profile, it),
  );
  if (life[1] - life[0] < 1e-9) life[1] = life[0] + 1e-9;
  const range = span ?? (zoomed === "run" ? [0, profile.seconds] : life);
  const curve = curveView(profile, site, span);
  const blocks = profile.isOurs ? blocksView(profile, site, range) : null;
  const sizes = pairs(profile, "sizes", site);
  const lives = pairs(profile, "lives", site);
  const [sizeBox, liveBox] = [box("Chunks by size"), box("Chunks by lifetime")];
  const draws = [
    curve?.draw,
    blocks?.draw,
    () => sizes.length && distribution(sizeBox, sizes, bytes),
    () => lives.length && distribution(liveBox, lives, (it) => shortCount(it)),
  ];
  const findings = profile.findings
    .filter(([of]) => of === site)
    .map((it) => findingItem(profile, it));
  const wait = profile.misses?.waits.find(
    (it) => it.site === site && it.share >= profile.misses.minShare,
  );
  if (wait) findings.push(waitItem(profile, wait));
  const colour = colourOf(scores.all);
  return [
    [
      h(
        "h2",
        { class: "site" },
        h(
          "span",
          { class: "score", style: { background: colour, color: inkOn(colour) } },
          score(scores.all),
        ),
        ` #${site} ${place.short} `,
        h("code", null, place.where),
      ),
      h("p", { class: "type" }, "allocates ", h("code", null, typeName(profile, site))),
      findings.length ? h("ol", { class: "findings" }, findings) : null,
      h(
        "div",
        { class: "two" },
        h(
          "div",
          null,
          section("Scores, and why", profile.isScored ? scoresView(profile, site) : null),
          section("Numbers", facts(profile, site)),
        ),
        h("div", null, section("Call stack, innermost first", stackView(profile, site))),
      ),
      curve ? section("Its share of memory over time", curve.element) : null,
      section(
        "Chunks over time",
        blocks && [
          span
            ? null
            : choice(
                "time",
                [
                  ["life", "the site's life"],
                  ["run", "the whole run"],
                ],
                zoomed,
                setZoomed,
              ),
          h("p", { class: "about" }, blocks.text),
          blocks.element,
        ],
      ),
      section("Bytes", bytesView(profile, site)),
      h(
        "div",
        { class: "two" },
        section("Chunks by size", sizes.length ? sizeBox : null),
        section("Chunks by lifetime, in events", lives.length ? liveBox : null),
      ),
      section("Misses, simulated", missesView(profile, site)),
      section("Pointers", pointersView(profile, site)),
    ],
    draws.filter((it) => it),
  ];
}
