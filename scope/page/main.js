// The page: what is always there, and the view that is chosen.

import { byId, choice, fill, h, table } from "./dom.js";
import { curves, resize, stepped, sweep, box } from "./charts.js";
import { beforeOf, readProfile, toSeconds } from "./data.js";
import { admitted, spanOf } from "./filter.js";
import { begin, linkTo, listen, set, state } from "./state.js";
import { findingsView } from "./findings.js";
import { FORMS, flameTasks, flameView, metricsOf } from "./flame.js";
import { columnsOf, sitesView, sorted } from "./sites.js";
import { siteView } from "./site.js";
import { graphView } from "./graph.js";
import { leaksView } from "./leaks.js";
import { regionsView } from "./regions.js";
import {
  COUNTS,
  memoryPageCards,
  memoryPagesView,
  refreshMemoryPages,
  resizeMemoryPages,
} from "./memory_pages.js";
import { changesView } from "./changes.js";
import { bytes, count, moment, percent, plural, seconds, shortCount } from "./units.js";

const VIEWS = {
  changes: ["Changes", "What is worse, better, new and gone"],
  findings: ["Findings", "What is wrong, and what to try first"],
  regions: ["Regions", "What each function and span touches"],
  pages: ["Pages", "Which pages of memory are accessed, and when"],
  flame: ["Flame graph", "Where bytes come from, by call stack"],
  sites: ["Sites", "All allocation points, as a table"],
  site: ["Site", "One allocation point in detail"],
  pointers: ["Pointers", "Which chunks lead to which"],
  leaks: ["Leaks", "What nothing led to at the end"],
  about: ["About", "How the profile came to be"],
};
const COLOURS = ["line1", "line2", "line3", "line4", "line5", "line6", "line7", "line8"];

let profile;
let zoomed = "life";

function head() {
  const { total } = profile;
  const [kind, code] =
    typeof profile.exit === "string" ? [profile.exit, ""] : Object.entries(profile.exit)[0];
  const end = { Code: `exit ${code}`, Signal: `signal ${code}`, Unknown: "end not seen", Ended: "ended" }[kind];
  const about = [
    profile.isOurs ? `${end} after ${seconds(profile.seconds)}` : `from ${profile.tool}`,
    profile.threads.length ? plural(profile.threads.length, "thread") : null,
    profile.started ? `started ${moment(profile.started)}` : null,
  ];
  const mean = (it) => (it ? it.geometric_mean_of_others.toFixed(2) : "–");
  const card = (name, value, more) =>
    h(
      "div",
      { class: "card" },
      h("span", { class: "name" }, name),
      h("b", null, value),
      h("span", { class: "more" }, more),
    );
  const { scores } = profile;
  const resident = profile.col["resident.bytes"].reduce((most, it) => Math.max(most, it), 0);
  const name = profile.command[0]?.split("/").pop() ?? "profile";
  document.title = `${name} – ccscope`;
  fill(
    byId("head"),
    h(
      "div",
      { class: "title" },
      h(
        "h1",
        { title: profile.command[0] },
        h("code", null, [name, ...profile.command.slice(1)].join(" ")),
      ),
      h("p", null, about.filter((it) => it).join(", ")),
      h(
        "span",
        { class: "tools" },
        h("button", { type: "button", onclick: theme, title: "Light or dark (d)" }, "Light / dark"),
        h("button", { type: "button", onclick: help, title: "Keys and words (?)" }, "Help"),
      ),
    ),
    h(
      "div",
      { class: "cards" },
      profile.pages
        ? memoryPageCards(profile, card)
        : [
          card(
            "peak",
            bytes(total.peak_usable),
            [
              profile.seconds ? `at ${seconds(profile.peakSeconds)}` : null,
              resident ? `${bytes(resident)} resident` : null,
            ]
              .filter((it) => it)
              .join("; "),
          ),
          card("at the end", bytes(total.end_usable), plural(total.end_chunks, "chunk")),
          card(
            "allocations",
            shortCount(total.allocations),
            `${bytes(total.usable)} in all, from ${plural(profile.sites, "site")}`,
          ),
          profile.accesses
            ? card(
                "heap accesses",
                shortCount(total.heap_reads + total.heap_writes),
                `${shortCount(total.heap_reads)} reads, ${shortCount(total.heap_writes)} writes`,
              )
            : null,
          profile.regions
            ? card("regions", shortCount(profile.regions.list.length), "functions and spans, by call path")
            : null,
          profile.accesses && !profile.regions
            ? card(
                "scores",
                `${mean(scores.lifetime)} · ${mean(scores.usage)} · ${mean(scores.useful_lifetime)}`,
                "lifetime, usage, useful lifetime: means without zeros, 1 is best",
              )
            : profile.isScored && !profile.regions
              ? card("score", mean(scores.lifetime), "lifetime: mean without zeros, 1 is best")
              : null,
          ],
    ),
  );
}

function filters() {
  const field = (id, label, key, list, title) =>
    h(
      "label",
      { title },
      label,
      " ",
      h("input", {
        type: "search",
        id,
        value: state[key],
        list,
        spellcheck: "false",
        autocomplete: "off",
        oninput: (event) => set({ [key]: event.target.value.trim() }),
      }),
    );
  const time = (key, label) =>
    h(
      "label",
      null,
      label,
      " ",
      h("input", {
        type: "number",
        id: key,
        min: 0,
        max: profile.seconds,
        step: "any",
        value: state[key],
        placeholder: "s",
        onchange: (event) => set({ [key]: event.target.value }),
      }),
    );
  const threads = h(
    "label",
    null,
    "thread ",
    h(
      "select",
      { id: "thread", onchange: (event) => set({ thread: event.target.value }) },
      h("option", { value: "" }, "all"),
      profile.threads.slice(0, 200).map(([id]) => h("option", { value: String(id) }, String(id))),
    ),
  );
  byId("filters").hidden = !profile.hasSites;
  const types = new Map();
  const peaks = profile.col["site.at_peak_usable"];
  for (let site = 0; site < profile.sites; site++) {
    const name = profile.types[profile.col["site.type"][site] - 1]?.[0];
    if (name) types.set(name, (types.get(name) ?? 0) + peaks[site]);
  }
  const names = [...types]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 200)
    .map(([name]) => name);
  fill(
    byId("filters"),
    field(
      "fn",
      "function",
      "fn",
      null,
      "Sites with a function in their stack whose name contains this (/)",
    ),
    names.length
      ? field("type", "type", "type", "types", "Sites whose type's name contains this (t)")
      : null,
    h(
      "datalist",
      { id: "types" },
      names.map((name) => h("option", { value: name })),
    ),
    profile.threads.length ? threads : null,
    profile.seconds ? [time("from", "from"), time("to", "to")] : null,
    h(
      "button",
      { type: "button", id: "clear", onclick: clear, title: "Clear all filters (x)" },
      "Clear",
    ),
    h("output", { id: "matches" }),
  );
}

const clear = () => set({ fn: "", type: "", thread: "", from: "", to: "" });

// What is of the whole run even where a span is chosen.
function wholeOf() {
  if (state.view === "flame") return ["drag", "misses"].find((it) => it === state.metric);
  return {
    changes: "what has changed",
    findings: "what each finding costs",
    sites: "the numbers of the table",
    site: "scores, numbers, bytes, sizes, lifetimes, misses and pointers",
    pointers: "loads and misses",
    leaks: "what was leaked",
  }[state.view];
}

function refreshSpan() {
  const whole = wholeOf();
  const [from, to] = [Number(state.from || 0), Number(state.to || profile.seconds)];
  byId("span").textContent = spanOf(profile, state)
    ? `Sites with bytes from ${seconds(from)} to ${seconds(to)}.${whole ? ` Still of the whole run: ${whole}.` : ""}`
    : "";
}

// What the controls show follows the state, except where the user types.
function refreshFilters(sites) {
  for (const key of ["fn", "type", "thread", "from", "to"]) {
    const control = byId(key);
    if (control && control !== document.activeElement) control.value = state[key];
  }
  const number = sites.reduce((sum, it) => sum + it, 0);
  byId("matches").textContent =
    number === profile.sites
      ? `all ${plural(number, "site")}`
      : `${count(number)} of ${plural(profile.sites, "site")}`;
  refreshSpan();
  byId("clear").disabled = !(state.fn || state.type || state.thread || state.from || state.to);
}

function series(name, from, to, part) {
  const { col } = profile;
  const xs = [];
  const ys = [];
  for (let i = from; i < to; i++) {
    xs.push(name === "curve" ? col.clock[i] / 1e9 : toSeconds(profile, col[`${name}.time`][i]));
    ys.push(col[`${name}.${part}`][i]);
  }
  return [xs, ys];
}

// Whose curves the profile has.
const curvesOf = () => [
  "process",
  ...(profile.threads.length ? ["threads"] : []),
  ...(profile.col["curves.time"].length ? ["sites"] : []),
];

function timeline(sites) {
  const { col, starts } = profile;
  if (!profile.seconds || profile.pages) return;
  const points = col["curve.time"].length;
  const tables = [series("curve", 0, points, "peak")];
  const lines = [];
  if (state.curves === "process") {
    lines.push(stepped("allocated", "allocated", { fill: "#4f7bd522" }));
    if (profile.old) {
      tables.push(beforeOf(profile, "before", 0));
      lines.push(stepped("allocated before", "before", { dash: [4, 3] }));
    }
    if (profile.accesses && !profile.regions) {
      tables.push(series("curve", 0, points, "touched"));
      lines.push(stepped("touched", "touched"));
    }
    if (col["resident.ns"].length) {
      const most = col["resident.bytes"].reduce((most, it) => Math.max(most, it), 0);
      // What is much larger than the heap would flatten its curves: the legend shows it.
      const isFar = most > 4 * profile.total.peak_usable;
      tables.push([
        Array.from(col["resident.ns"], (it) => it / 1e9),
        Array.from(col["resident.bytes"]),
      ]);
      lines.push(
        stepped(isFar ? "resident (choose to show)" : "resident", "resident", {
          dash: [5, 3],
          show: !isFar,
        }),
      );
    }
  } else {
    lines.push(stepped("all", "faint"));
    const isThreads = state.curves === "threads";
    const all = isThreads
      ? profile.threads.map((_, i) => i).slice(0, starts.threads.length - 1)
      : [...sites.keys()].filter((site) => sites[site]);
    const peak = isThreads ? (i) => profile.threads[i][4] : (site) => col["site.at_peak_usable"][site];
    all.sort((a, b) => peak(b) - peak(a));
    const name = isThreads ? "threads" : "curves";
    all.slice(0, COLOURS.length).forEach((i, n) => {
      tables.push(series(name, starts[name][i], starts[name][i + 1], "usable"));
      lines.push(stepped(isThreads ? `thread ${profile.threads[i][0]}` : `#${i}`, COLOURS[n]));
    });
  }
  const data = tables.length > 1 ? uPlot.join(tables) : tables[0];
  const element = box("Bytes over time");
  fill(
    byId("time"),
    h(
      "div",
      { class: "bar" },
      choice(
        "curves",
        [
          ["process", "process"],
          ["threads", "threads", "The threads with the largest peaks"],
          [
            "sites",
            "sites",
            "The sites with most bytes at the peak, of those that the filters admit",
          ],
        ].filter(([key]) => curvesOf().includes(key)),
        state.curves,
        (it) => set({ curves: it }),
      ),
      h(
        "span",
        { class: "about" },
        profile.regions
          ? ""
          : "Drag over a span of time to filter by it; click for the flame graph at a time.",
      ),
    ),
    element,
  );
  const span = spanOf(profile, state)
    ? [Number(state.from || 0), Number(state.to || profile.seconds)]
    : null;
  curves(element, data, lines, {
    height: 150,
    span,
    mark: state.metric === "at" ? Number(state.at || profile.peakSeconds) : null,
    choose: profile.regions
      ? null
      : (from, to) => set({ from: from.toPrecision(6), to: to.toPrecision(6) }),
    point: (at) => set({ view: "flame", metric: "at", at: Math.max(0, at).toPrecision(6) }),
  });
}

function tabs() {
  fill(
    byId("tabs"),
    Object.entries(VIEWS).map(([key, [name, title]], i) => {
      if (key === "site" && state.site === "") return null;
      const text = key === "site" ? `Site #${state.site}` : name;
      return h(
        "a",
        {
          href: linkTo({ view: key }),
          title: `${title} (${i + 1})`,
          "data-key": key,
          "aria-current": state.view === key ? "page" : null,
        },
        text,
      );
    }),
  );
}

function aboutView() {
  const rows = [
    ["program", profile.command.join(" ")],
    ["process", String(profile.pid)],
    profile.isOurs ? ["compiler", profile.compiler || "not instrumented"] : null,
    profile.machine ? ["machine", profile.machine] : null,
    ["made by", profile.isOurs ? `ccscope ${profile.tool}` : profile.tool],
    profile.threads.length && [
      "threads",
      table(
        ["thread", "from", "to", "allocations", "peak", "at the end"],
        0,
        profile.threads.slice(0, 100).map(([id, from, to, allocations, peak, end]) =>
          h(
            "tr",
            null,
            [
              id,
              seconds(toSeconds(profile, from)),
              seconds(toSeconds(profile, to)),
              shortCount(allocations),
              bytes(peak),
              bytes(end),
            ].map((it) => h("td", { class: "number" }, String(it))),
          ),
        ),
      ),
    ],
  ];
  return [
    h(
      "dl",
      { class: "facts" },
      rows.filter((it) => it).map(([name, it]) => [h("dt", null, name), h("dd", null, it)]),
    ),
    profile.caveats.map((text) => h("p", { class: "note" }, text)),
    h("h3", null, "Libraries in this page"),
    h("pre", { class: "licences" }, byId("licences").textContent.trim()),
  ];
}

function view(sites) {
  const element = byId("view");
  const span = spanOf(profile, state)
    ? [Number(state.from || 0), Math.min(profile.seconds, Number(state.to || profile.seconds))]
    : null;
  let content;
  let draws = [];
  if (state.view === "flame") {
    content = flameView(profile);
    draws = flameTasks(profile, () => sites);
  } else if (state.view === "sites") content = sitesView(profile, sites);
  else if (state.view === "site") {
    [content, draws] = siteView(
      profile,
      state.site === "" ? -1 : Number(state.site),
      span,
      zoomed,
      (it) => {
        zoomed = it;
        view(sites);
        sweep();
      },
    );
  } else if (state.view === "changes") content = changesView(profile, sites);
  else if (state.view === "pointers") [content, draws] = graphView(profile, sites);
  else if (state.view === "leaks") content = leaksView(profile, sites);
  else if (state.view === "regions") [content, draws] = regionsView(profile, state.region);
  else if (state.view === "pages") [content, draws] = memoryPagesView(profile);
  else if (state.view === "about") content = aboutView();
  else content = findingsView(profile, sites);
  element.dataset.view = state.view;
  fill(element, content.flat(Infinity));
  draws.forEach((draw) => draw());
}

// Work is spread over frames: the filters answer at once, then the view, then the curves.
const later = { frame: 0, tasks: [] };
function spread(tasks) {
  cancelAnimationFrame(later.frame);
  later.tasks = tasks;
  const next = () => {
    later.tasks.shift()?.();
    later.frame = later.tasks.length ? requestAnimationFrame(next) : 0;
    document.documentElement.toggleAttribute("data-busy", later.tasks.length > 0);
  };
  document.documentElement.toggleAttribute("data-busy", true);
  later.frame = requestAnimationFrame(next);
}

function changed(names) {
  const has = (...keys) => keys.some((key) => names.has(key));
  const filtered = has("fn", "type", "thread", "from", "to");
  const all = names.size > 5;
  if (has("theme")) applyTheme();
  const tasks = [
    () => {
      refreshFilters(admitted(profile, state));
      tabs();
    },
  ];
  // What stands around the graph stays, and with it the focus.
  const inFlame =
    !all &&
    state.view === "flame" &&
    (filtered || has("search", "zoom", "at")) &&
    !has("view", "metric", "form", "callers", "theme");
  if (inFlame) {
    const [first, second] = flameTasks(profile, () => admitted(profile, state));
    tasks.push(first, second, () => {
      const output = document.querySelector(".slider output");
      if (output) output.textContent = seconds(Number(state.at || profile.peakSeconds));
    });
  } else if (state.view === "pages" && [...names].every((it) => ["count", "part"].includes(it))) {
    tasks.push(refreshMemoryPages);
  } else {
    tasks.push(() => view(admitted(profile, state)));
  }
  const isCurve =
    has("from", "to", "curves", "at", "metric", "theme") || (filtered && state.curves === "sites");
  if (isCurve || all) tasks.push(() => timeline(admitted(profile, state)));
  tasks.push(() => sweep());
  spread(tasks);
  if (!all && has("view", "site")) scrollTo({ top: byId("tabs").offsetTop - 8 });
}

function applyTheme() {
  const { dataset } = document.documentElement;
  if (state.theme) dataset.theme = state.theme;
  else delete dataset.theme;
}

function theme() {
  const dark = state.theme
    ? state.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  set({ theme: dark ? "light" : "dark" });
}

// Paper is light and narrow; charts are drawn for it.
function paper(is) {
  document.documentElement.toggleAttribute("data-paper", is);
  if (is) document.documentElement.dataset.theme = "light";
  else applyTheme();
  const sites = admitted(profile, state);
  timeline(sites);
  if (["flame", "site", "pages"].includes(state.view)) view(sites);
  sweep();
}

function help() {
  const keys = [
    ["1, 2, …", "views"],
    ["/", "filter by function"],
    ["t", "filter by type"],
    ["x", "clear filters"],
    ["n, p", "next and previous site, in the order of the table"],
    ["d", "light or dark"],
    ["arrows, Enter, Esc", "in the flame graph: choose a frame, zoom, show all"],
    ["arrows, Home, End, Esc", "in the picture of the memory: choose a page of memory, or none"],
    ["?", "this help"],
  ];
  const words = [
    ["site", "an allocation point: one whole call stack that allocates"],
    ["chunk", "one allocation"],
    ["peak", "the most bytes that were allocated at a time"],
    ["touched", "bytes of chunks that were read or written so far"],
    ["resident", "bytes of the process that the system has in memory"],
    ["drag", "bytes times the time between the last access and the free"],
    [
      "lifetime score",
      "how long chunks live within the time for which the site allocates; low if they come and go",
    ],
    ["usage score", "the part of the bytes that is touched, read and written"],
    ["useful-lifetime score", "the part of a chunk's life between its first and last access"],
    ["misses", "recorded bursts of accesses, replayed through simulated caches of the machine"],
    ["event", "a load, a store, an allocation or a free"],
    ["block", "of a trace: bytes that are copied, stored or fetched by one call"],
  ];
  const list = (rows) =>
    h(
      "dl",
      { class: "facts" },
      rows.map(([name, text]) => [h("dt", null, name), h("dd", null, text)]),
    );
  fill(
    byId("help"),
    h("h2", null, "Keys"),
    list(keys),
    h("h2", null, "Words"),
    list(words),
    h(
      "p",
      null,
      "The address of the page has all that is chosen: copy it to come back to what you see. Filters by time hold for allocations and bytes; drag and misses are those of the whole run.",
    ),
    h("form", { method: "dialog" }, h("button", null, "Close")),
  );
  byId("help").showModal();
}

function next(step) {
  const [sites] = sorted(profile, admitted(profile, state));
  const at = sites.indexOf(Number(state.site));
  const to = state.site === "" || at < 0 ? 0 : at + step;
  if (sites[to] !== undefined) set({ view: "site", site: sites[to] });
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isField = event.target.closest("input, select, textarea");
  if (event.key === "Escape" && isField) event.target.blur();
  if (isField || byId("help").open) return;
  const views = Object.keys(VIEWS);
  const at = Number(event.key) - 1;
  const does =
    {
      "/": () => byId("fn").focus(),
      t: () => byId("type")?.focus(),
      x: clear,
      d: theme,
      "?": help,
      n: () => next(1),
      p: () => next(-1),
    }[event.key] ?? (views[at] ? () => set({ view: views[at] }) : null);
  if (!does) return;
  event.preventDefault();
  does();
}

async function open() {
  profile = await readProfile(byId("data").textContent);
  byId("data").remove();
  profile.peakSeconds = toSeconds(profile, profile.total.peak_time);
  if (!profile.old) delete VIEWS.changes;
  if (!profile.isOurs) delete VIEWS.pointers;
  if (!profile.leaks) delete VIEWS.leaks;
  // A profile has regions, pages of memory or sites.
  profile.hasSites = !profile.regions && !profile.pages;
  const views = profile.hasSites ? [] : ["findings", "flame", "sites", "site", "pointers", "leaks"];
  for (const view of [...views, ...["regions", "pages"].filter((it) => !profile[it])]) delete VIEWS[view];
  const among = (values) => (value) => values.includes(value);
  const isTime = (value) => Number(value) >= 0;
  const first = Object.keys(VIEWS).find((it) => it !== "changes");
  begin(profile.old ? "changes" : first, {
    view: among(Object.keys(VIEWS)),
    site: (value) => value === "" || (/^\d+$/.test(value) && Number(value) < profile.sites),
    region: (value) => value === "" || profile.regions?.list[Number(value)] !== undefined,
    count: among(COUNTS),
    part: (value) => value === "" || (/^\d+$/.test(value) && Number(value) < profile.pages?.parts),
    thread: among(["", ...profile.threads.map(([id]) => String(id))]),
    from: isTime,
    to: isTime,
    at: isTime,
    metric: among(metricsOf(profile).map(([key]) => key)),
    form: among(Object.keys(FORMS)),
    sort: among(["saving", ...columnsOf(profile).map(([key]) => key)]),
    curves: among(curvesOf()),
    theme: among(["", "light", "dark"]),
  });
  applyTheme();
  head();
  filters();
  const sites = admitted(profile, state);
  refreshFilters(sites);
  tabs();
  view(sites);
  timeline(sites);
  fill(
    byId("foot"),
    `Written by ccscope. Nothing in this page leaves your machine. Sums above the filters are those of the whole run.`,
  );
  listen(changed);
  addEventListener("keydown", key);
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      resize();
      if (state.view === "pages") spread([resizeMemoryPages]);
      if (state.view === "flame") spread(flameTasks(profile, () => admitted(profile, state)));
    }, 100);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    changed(new Set(["theme", "fn"])),
  );
  requestAnimationFrame(() =>
    setTimeout(() => {
      document.documentElement.dataset.ready = String(Math.round(performance.now()));
    }),
  );
}

open().catch((error) => {
  fill(
    byId("head"),
    h("p", { class: "none" }, `The profile in this page cannot be read: ${error.message}`),
  );
  document.documentElement.dataset.failed = "";
  throw error;
});
