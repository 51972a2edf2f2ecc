// The memory of a traced process: a dot for each memory page, the darker, the more accesses.

import { choice, fill, h, table, tip } from "./dom.js";
import { css } from "./colours.js";
import { set, state } from "./state.js";
import { bytes, count, percent, plural, shortCount } from "./units.js";

export const COUNTS = ["all", "loads", "stores", "blocks"];
// Distances of dots, the smaller for pictures that would be taller than `TALL`; room for names, and
// between bands.
const STEPS = [15, 11];
const TALL = 800;
const NAMES = 250;
const SPACE = 5;
// So many dots without accesses are drawn; of more, `EDGE` at each end, and their number.
const GAP = 12;
const EDGE = 2;
// Colours between two accesses in the style sheet's five, and milliseconds a part is shown.
const LEVELS = 40;
const BEAT = 160;

// The address of a memory page.
const hex = (number) => (number === 0 ? "0x0" : `0x${number.toString(16)}000`);
const sumOf = (numbers) => numbers.reduce((sum, it) => sum + it, 0);

// Dots by band, and the accesses of each in each part of the run.
function modelOf(profile) {
  const { col, starts, pages } = profile;
  const used = pages.bands.filter((it) => it.dots);
  const dots = [];
  const cells = { dot: [], part: [] };
  used.forEach((band, list) => {
    let [at, before] = [0, -1];
    band.firstDot = dots.length;
    for (let i = starts.pages[list]; i < starts.pages[list + 1]; i++) {
      at += col["pages.dot"][i];
      if (at !== before) dots.push({ band, at });
      before = at;
      cells.dot.push(dots.length - 1);
      cells.part.push(col["pages.part"][i]);
    }
    band.endDot = dots.length;
  });
  return { dots, cells, counts: COUNTS.slice(1).map((it) => col[`pages.${it}`]) };
}

// Accesses of each dot, of one kind or of all; `part` of the run or, if it is null, in the whole.
function valuesOf(model, kind, part) {
  const values = new Float64Array(model.dots.length);
  const columns = kind === "all" ? model.counts : [model.counts[COUNTS.indexOf(kind) - 1]];
  for (const column of columns) {
    for (let i = 0; i < column.length; i++) {
      if (part === null || model.cells.part[i] === part) values[model.cells.dot[i]] += column[i];
    }
  }
  return values;
}

// Of each part, how many dots it accesses; and the most accesses of one dot in any.
function partsOf(model, kind, parts) {
  const numbers = new Float64Array(parts);
  const columns = kind === "all" ? model.counts : [model.counts[COUNTS.indexOf(kind) - 1]];
  let most = 0;
  for (let i = 0; i < model.cells.dot.length; i++) {
    const value = columns.reduce((sum, it) => sum + it[i], 0);
    numbers[model.cells.part[i]] += value > 0 ? 1 : 0;
    most = Math.max(most, value);
  }
  return [numbers, most];
}

// Where everything lies: bands from top to bottom, and slots, each a dot or what stands for some.
function layoutOf(profile, model, width, step) {
  const names = width < 800 ? 190 : NAMES;
  const columns = Math.max(8, Math.floor((width - names) / step));
  const slots = [];
  const bands = [];
  let top = 0;
  for (const band of profile.pages.bands) {
    let [row, column] = [0, 0];
    const place = (slot, room = 1) => {
      if (column + room > columns) [row, column] = [row + 1, 0];
      slots.push({
        ...slot,
        band,
        room,
        x: names + column * step + step / 2,
        y: top + SPACE + row * step + step / 2,
      });
      column += room;
    };
    const quiet = (what, at, number) => {
      const one = (from) => place({ what, at: from, number: 1 });
      const some = (from, to) => {
        for (let i = from; i < to; i++) one(i);
      };
      if (number <= GAP) {
        some(at, at + number);
        return;
      }
      some(at, at + EDGE);
      const text = `+${shortCount(number - 2 * EDGE)}`;
      const room = Math.min(columns, Math.ceil((text.length * 6.6 + 6) / step));
      place({ what, at: at + EDGE, number: number - 2 * EDGE, text }, room);
      some(at + number - EDGE, at + number);
    };
    if (band.dots) {
      const what = band.traced ? "untouched" : "untraced";
      let next = 0;
      for (let dot = band.firstDot; dot < band.endDot; dot++) {
        const { at } = model.dots[dot];
        quiet(what, next, at - next);
        place({ what: "dot", at, number: 1, dot });
        next = at + 1;
      }
      quiet(what, next, band.dots - next);
    } else {
      quiet("untraced", 0, band.untraced);
      quiet("untouched", 0, band.untouched);
    }
    const least = band.dots ? 36 : 18;
    const height = Math.max(least, (row + 1) * step) + 2 * SPACE;
    bands.push({ band, top, height });
    top += height;
  }
  return { names, width, height: top, bands, slots, step };
}

// What stands beside a band.
function labelOf({ band, top, height }, names) {
  const lines = band.dots
    ? [
        [h("b", null, band.name), band.kind ? ` ${band.kind}` : ""],
        `${hex(band.first)} · ${count(band.touched)} of ${plural(band.pages, "page")}`,
      ]
    : [band.names.join(" · ")];
  return h(
    "div",
    {
      class: band.dots ? "label" : "label quiet",
      style: { top: `${top + SPACE - 3}px`, height: `${height - SPACE}px`, width: `${names - 14}px` },
    },
    h("div", { class: "stays" }, lines.map((it) => h("div", null, it))),
  );
}

// What a slot stands for, in lines.
function linesOf(profile, slot, values, isPart) {
  const { band } = slot;
  const { unit } = profile.pages;
  if (!band.dots) {
    const words = {
      untraced: "not traced",
      untouched: band.few ? "with few accesses or none" : "not accessed",
    };
    const pages = slot.what === "untraced" ? band.untraced : band.untouched;
    const more = band.others ? ` · and ${count(band.others)} more` : "";
    return [`${plural(pages, "page")} ${words[slot.what]}`, `${band.names.join(" · ")}${more}`];
  }
  const first = slot.at * unit;
  const number = Math.min(slot.number * unit, band.pages - first);
  const where = `page ${count(first + 1)}${number > 1 ? ` to ${count(first + number)}` : ""} of ${count(band.pages)}`;
  const head = `${band.name} ${band.kind}`.trim();
  const lines = [`${head}: ${hex(band.first + first)}, ${where}`];
  if (slot.what !== "dot") return [...lines, band.traced ? "not accessed" : "not traced"];
  const [loads, stores, blocks] = values.map((it) => it[slot.dot]);
  lines.push(`${plural(loads, "load")}, ${plural(stores, "store")}, ${plural(blocks, "block")}`);
  return isPart ? [...lines, "in this part of the run"] : lines;
}

// The colours of the style sheet, between which accesses lie.
function rampOf() {
  const stops = [1, 2, 3, 4, 5].map((it) =>
    css(`memory-page${it}`).match(/[\d.]+/g).slice(0, 3).map(Number),
  );
  return Array.from({ length: LEVELS + 1 }, (_, level) => {
    const at = (level / LEVELS) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at));
    const part = at - low;
    const mixed = stops[low].map((it, i) => Math.round(it + (stops[low + 1][i] - it) * part));
    return `rgb(${mixed.join(", ")})`;
  });
}

const levelOf = (value, most) =>
  most <= 1 ? LEVELS : Math.round((LEVELS * Math.log(value)) / Math.log(most));

// The picture that is shown, for what changes it without drawing the page anew.
let shown = null;

function paint() {
  const { canvas, layout, values, most, ramp, chosen } = shown;
  const { step } = layout;
  const radius = step * 0.39;
  const scale = globalThis.devicePixelRatio || 1;
  const size = [layout.width, layout.height].map((it) => Math.round(it * scale));
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  canvas.style.setProperty("height", `${layout.height}px`);
  const draw = canvas.getContext("2d");
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, layout.width, layout.height);
  draw.strokeStyle = css("faint");
  draw.lineWidth = 1;
  draw.beginPath();
  for (const { top, height } of layout.bands) {
    draw.moveTo(0, top + height - 0.5);
    draw.lineTo(layout.width, top + height - 0.5);
  }
  draw.stroke();
  // Dots of one colour are one path.
  const colours = new Map();
  const add = (key, slot) => {
    if (!colours.has(key)) colours.set(key, []);
    colours.get(key).push(slot);
  };
  draw.fillStyle = css("muted");
  draw.font = "11px system-ui, sans-serif";
  draw.textBaseline = "middle";
  draw.textAlign = "center";
  for (const slot of layout.slots) {
    const value = slot.what === "dot" ? values[slot.dot] : 0;
    if (slot.text) draw.fillText(slot.text, slot.x + ((slot.room - 1) * step) / 2, slot.y + 0.5);
    else if (slot.what === "untraced") add("untraced", slot);
    else if (value > 0) add(levelOf(value, most), slot);
    else add("untouched", slot);
  }
  for (const [key, slots] of colours) {
    const isOpen = key === "untouched";
    draw.beginPath();
    for (const { x, y } of slots) {
      const size = isOpen ? radius - 0.5 : radius;
      draw.moveTo(x + size, y);
      draw.arc(x, y, size, 0, 2 * Math.PI);
    }
    draw.fillStyle = key === "untraced" ? css("untraced") : isOpen ? css("paper") : ramp[key];
    draw.fill();
    if (isOpen) draw.stroke();
  }
  if (chosen) {
    draw.strokeStyle = css("accent");
    draw.lineWidth = 2;
    const wide = (chosen.room - 1) * step;
    const [x, y] = [chosen.x, chosen.y].map((it) => it - step / 2 - 1);
    draw.beginPath();
    draw.roundRect(x, y, step + 2 + wide, step + 2, step / 2 + 1);
    draw.stroke();
  }
}

// The slot at a point.
function slotAt(x, y) {
  const { slots, bands, step } = shown.layout;
  const band = bands.find((it) => y < it.top + it.height)?.band;
  const half = step / 2;
  return slots.find(
    (it) =>
      it.band === band &&
      Math.abs(it.y - y) <= half &&
      x >= it.x - half &&
      x <= it.x + it.room * step - half,
  );
}

const slotLines = (slot) =>
  linesOf(shown.profile, slot, shown.kinds, shown.part !== null).filter((it) => it);

function choose(slot) {
  shown.chosen = slot;
  const text = slot ? slotLines(slot).join(" · ") : "Point at a dot, or choose one by the arrow keys.";
  shown.detail.textContent = text;
}

// The next dot that was accessed, in the direction of an arrow.
function toward(key) {
  const dots = shown.layout.slots.filter((it) => it.what === "dot");
  const at = dots.findIndex((it) => it.dot === shown.chosen?.dot);
  const last = dots.length - 1;
  const ends = { Home: 0, End: last };
  if (key in ends) return dots[ends[key]];
  if (at < 0) return dots[0];
  if (key === "ArrowRight" || key === "ArrowLeft") {
    return dots[Math.max(0, Math.min(last, at + (key === "ArrowRight" ? 1 : -1)))];
  }
  const { x, y } = dots[at];
  const down = key === "ArrowDown";
  const beyond = dots.filter((it) => (down ? it.y > y : it.y < y));
  const row = beyond[down ? 0 : beyond.length - 1]?.y;
  const distance = (it) => Math.abs(it.x - x);
  return beyond
    .filter((it) => it.y === row)
    .reduce((best, it) => (distance(it) < distance(best) ? it : best), beyond.find((it) => it.y === row) ?? dots[at]);
}

function onKey(event) {
  const keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "Escape"];
  if (!keys.includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  choose(event.key === "Escape" ? null : toward(event.key));
  paint();
  const { canvas, chosen } = shown;
  if (!chosen) return;
  const y = canvas.getBoundingClientRect().top + chosen.y;
  if (y < 40 || y > innerHeight - 40) scrollBy({ top: y - innerHeight / 2 });
}

// Which events a part of the run has, as the trace as text counts them.
function spanOf({ events, parts }, part) {
  const from = Math.ceil((part * events) / parts);
  const to = Math.ceil(((part + 1) * events) / parts) - 1;
  return to < from ? "no events" : `events ${count(from)} to ${count(to)}`;
}

// Shows a part of the run, or all of it.
function show(part) {
  const { profile, model, player } = shown;
  const kind = COUNTS.includes(state.count) ? state.count : "all";
  const { parts } = profile.pages;
  shown.part = part;
  shown.kinds = COUNTS.slice(1).map((it) => valuesOf(model, it, part));
  shown.values = valuesOf(model, kind, part);
  const [numbers, most] = partsOf(model, kind, parts);
  shown.most = part === null ? shown.values.reduce((most, it) => Math.max(most, it), 0) : most;
  const highest = numbers.reduce((most, it) => Math.max(most, it), 1);
  [...player.bars.children].forEach((bar, i) => {
    bar.style.setProperty("height", `${numbers[i] ? Math.max(6, (100 * numbers[i]) / highest) : 0}%`);
    bar.className = i === part ? "now" : "";
  });
  player.slider.value = part ?? 0;
  player.slider.setAttribute(
    "aria-valuetext",
    part === null ? "the whole run" : `part ${part + 1} of ${parts}`,
  );
  player.output.textContent =
    part === null
      ? `the whole run, ${plural(profile.pages.events, "event")}`
      : `part ${part + 1} of ${parts}, ${spanOf(profile.pages, part)}`;
  player.whole.setAttribute("aria-pressed", part === null ? "true" : "false");
  legend();
  choose(shown.chosen);
  paint();
}

function legend() {
  const { most, ramp, scale } = shown;
  const dot = (colour, ring) =>
    h("i", { class: "dot", style: { background: colour, "border-color": ring ?? colour } });
  const marks = [];
  for (let value = 1; value < most; value *= 10) marks.push(value);
  if (marks.length > 1 && most < 1.5 * marks[marks.length - 1]) marks.pop();
  if (most > 0) marks.push(most);
  fill(
    scale,
    h("span", null, dot("var(--untraced)"), "not traced"),
    h("span", null, dot("var(--paper)", "var(--faint)"), "not accessed"),
    marks.map((it) => h("span", null, dot(ramp[levelOf(it, most)]), shortCount(it))),
    h("span", null, most > 0 ? "accesses, on a logarithmic scale" : "no accesses of this kind"),
  );
}

const partOf = ({ parts }) =>
  state.part === "" ? null : Math.min(parts - 1, Math.max(0, Number(state.part)));

// The address gets the part when it stays: a part that is only passed on the way is no step.
const commit = () => set({ part: shown.part ?? "" });

function play() {
  const { player, profile } = shown;
  const isOn = player.timer === null;
  clearTimeout(player.timer);
  player.timer = null;
  player.button.textContent = isOn ? "Pause" : "Play";
  if (!isOn) {
    commit();
    return;
  }
  const last = profile.pages.parts - 1;
  const next = (part) => {
    if (!player.button.isConnected) return;
    show(part);
    if (part === last) play();
    else player.timer = setTimeout(next, BEAT, part + 1);
  };
  const from = shown.part === null || shown.part === last ? 0 : shown.part + 1;
  player.timer = setTimeout(next, 0, from);
}

function playerOf({ parts }) {
  const player = { timer: null };
  player.button = h("button", { type: "button", id: "play", onclick: play }, "Play");
  player.whole = h(
    "button",
    { type: "button", id: "whole", title: "All parts of the run together", onclick: () => halt(null) },
    "Whole run",
  );
  player.slider = h("input", {
    type: "range",
    id: "part",
    min: 0,
    max: parts - 1,
    step: 1,
    "aria-label": "Part of the run",
    oninput: (event) => halt(Number(event.target.value), false),
    onchange: commit,
  });
  player.bars = h("div", { class: "bars", title: "Pages that each part accesses" }, Array.from({ length: parts }, () => h("i")));
  player.output = h("output", null);
  const halt = (part, stays = true) => {
    clearTimeout(player.timer);
    player.timer = null;
    player.button.textContent = "Play";
    show(part);
    if (stays) commit();
  };
  player.element = h(
    "div",
    { class: "player" },
    player.button,
    h("div", { class: "track" }, player.bars, player.slider),
    player.whole,
    player.output,
  );
  return player;
}

function measure() {
  const { profile, model, element, labels } = shown;
  for (const step of STEPS) {
    shown.layout = layoutOf(profile, model, Math.max(360, element.clientWidth), step);
    if (shown.layout.height <= TALL) break;
  }
  const { bands, names } = shown.layout;
  fill(labels, bands.map((it) => labelOf(it, names)));
  shown.chosen = null;
}

// Draws again what the state or the window has changed.
export function refreshMemoryPages() {
  for (const button of document.querySelectorAll("#view .choice [data-key]")) {
    button.setAttribute("aria-pressed", button.dataset.key === state.count ? "true" : "false");
  }
  if (shown.player.timer === null) show(partOf(shown.profile.pages));
}

export function resizeMemoryPages() {
  measure();
  show(shown.part);
}

function tableOf({ bands }) {
  const row = (it) => {
    const cells = [
      count(it.pages),
      count(it.touched),
      percent(it.touched / it.pages),
      ...it.counts.map(shortCount),
    ];
    return h(
      "tr",
      null,
      h("td", null, h("code", null, it.name), it.kind ? ` ${it.kind}` : ""),
      h("td", null, h("code", null, hex(it.first))),
      h("td", null, h("code", null, it.rights)),
      cells.map((cell) => h("td", { class: "number" }, cell)),
    );
  };
  const heads = ["mapping", "from", "rights", "pages", "accessed", "part", "loads", "stores", "blocks"];
  return table(heads, 3, ...bands.filter((it) => it.dots).map(row));
}

export function memoryPageCards({ pages }, card) {
  const { counts, touched, traced, mappings, bands, few } = pages;
  const kinds = counts.map((it, i) => (it === 1 ? `1 ${COUNTS[i + 1].slice(0, -1)}` : `${shortCount(it)} ${COUNTS[i + 1]}`));
  const used = bands.filter((it) => it.dots).length + few;
  return [
    card("accesses", shortCount(sumOf(counts)), kinds.join(", ")),
    card("pages accessed", shortCount(touched), `of ${shortCount(traced)} traced; ${bytes(touched * 4096)}`),
    card("mappings accessed", shortCount(used), `of ${shortCount(mappings)}`),
  ];
}

export function memoryPagesView(profile) {
  const { pages } = profile;
  const model = (profile.model ??= modelOf(profile));
  const player = playerOf(pages);
  const canvas = h("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label": "Pages of memory by mapping, low addresses first; arrow keys choose one",
    "aria-describedby": "memory-page-detail",
    onkeydown: onKey,
    onmousemove: (event) => {
      const slot = slotAt(event.offsetX, event.offsetY);
      tip(slot ? event : null, ...(slot ? slotLines(slot) : []));
    },
    onmouseleave: () => tip(null),
    onclick: (event) => {
      choose(slotAt(event.offsetX, event.offsetY) ?? null);
      paint();
    },
  });
  const labels = h("div", { class: "labels" });
  const element = h("div", { class: "picture" }, labels, canvas);
  const detail = h("p", { id: "memory-page-detail", class: "about", "aria-live": "polite" });
  const scale = h("div", { class: "scale" });
  const old = shown;
  clearTimeout(old?.player.timer);
  shown = { profile, model, player, canvas, labels, element, detail, scale, ramp: rampOf(), chosen: null };
  const kinds = COUNTS.map((it) => [it, it]);
  const notes = [
    pages.unit > 1 ? `A dot stands for ${count(pages.unit)} pages.` : null,
    pages.few ? `${plural(pages.few, "mapping")} with the fewest accesses are not drawn.` : null,
  ].filter((it) => it);
  const draw = () => {
    measure();
    show(partOf(pages));
  };
  return [
    [
      h(
        "div",
        { class: "bar" },
        choice("accesses", kinds, state.count, (it) => set({ count: it })),
        player.element,
      ),
      scale,
      detail,
      notes.length ? h("p", { class: "note" }, notes.join(" ")) : null,
      element,
      tableOf(pages),
    ],
    [draw],
  ];
}
