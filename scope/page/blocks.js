// The chunks of a site as blocks over time: length is the lifetime, shade the size, and two marks
// are the first and the last access.

import { tip } from "./dom.js";
import { box, rows } from "./charts.js";
import { css } from "./colours.js";
import { toSeconds } from "./data.js";
import { bytes, count, plural, seconds } from "./units.js";

// So many chunks have a row each; more of them share rows.
const OWN_ROWS = 60;
const MIN_WIDTH = 6;

// Chunks as the profile has them.
function chunksOf(profile, site) {
  const { col, starts } = profile;
  const chunks = [];
  for (let i = starts.chunks[site]; i < starts.chunks[site + 1]; i++) {
    const born = col["chunks.after"][i];
    const at = (name) => (col[`chunks.${name}`][i] ? born + col[`chunks.${name}`][i] - 1 : null);
    const freed = at("freed");
    const thread = Math.floor(col["chunks.thread"][i] / 2);
    chunks.push({
      born,
      freed,
      end: freed ?? profile.end,
      first: at("first"),
      last: at("last"),
      size: col["chunks.size"][i],
      reads: col["chunks.reads"][i],
      writes: col["chunks.writes"][i],
      touched: col["chunks.touched"][i],
      shared: col["chunks.thread"][i] % 2 === 1,
      thread: thread ? profile.threads[thread - 1]?.[0] : null,
    });
  }
  return chunks;
}

// Groups of chunks, for a profile that does not have each of them.
function groupsOf(profile, site) {
  const { col, starts } = profile;
  const groups = [];
  for (let i = starts.groups[site]; i < starts.groups[site + 1]; i++) {
    const born = col["groups.after"][i];
    groups.push({
      born,
      end: born + col["groups.freed"][i],
      last: born + col["groups.last"][i],
      chunks: col["groups.chunks"][i],
      life: col["groups.life"][i],
    });
  }
  return groups;
}

// The row of each block: its own, or the first that is free.
function assign(blocks) {
  if (blocks.length <= OWN_ROWS)
    return blocks.forEach((block, i) => {
      block.row = i;
    });
  const ends = [];
  for (const block of blocks) {
    let row = ends.findIndex((end) => end <= block.left);
    if (row < 0) row = ends.push(0) - 1;
    ends[row] = block.right;
    block.row = row;
  }
}

const shade = (part) =>
  `color-mix(in oklab, ${css("block-dark")} ${Math.round(part * 100)}%, ${css("block-light")})`;

export function blocksView(profile, site, range) {
  const chunks = chunksOf(profile, site);
  const groups = chunks.length ? [] : groupsOf(profile, site);
  const all = (chunks.length ? chunks : groups).map((it) => ({
    ...it,
    left: toSeconds(profile, it.born),
    right: toSeconds(profile, it.end),
    first: it.first === null || it.first === undefined ? null : toSeconds(profile, it.first),
    lastAt: it.last === null ? null : toSeconds(profile, it.last),
  }));
  const blocks = all
    .filter((it) => it.right >= range[0] && it.left <= range[1])
    .sort((a, b) => a.left - b.left);
  const allocations = profile.col["site.allocations"][site];
  if (!blocks.length) {
    return {
      text: "The profile has no chunk of this site in the span. Record with --full to keep each chunk.",
      draw: null,
    };
  }
  assign(blocks);
  const number = Math.max(...blocks.map((it) => it.row)) + 1;
  const sizes = blocks.map((it) => Math.max(1, it.size ?? it.chunks));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const part = (size) =>
    most > least ? Math.log(size / least + 1e-9) / Math.log(most / least) : 0.35;
  const shades = blocks.map((it) => shade(Math.max(0, Math.min(1, part(it.size ?? it.chunks)))));
  const height = Math.min(460, Math.max(90, number * 11 + 44));
  const element = box("Chunks over time");
  const paint = (chart) => {
    const { ctx } = chart;
    const one = Math.abs(chart.valToPos(1, "y", true) - chart.valToPos(0, "y", true));
    ctx.save();
    blocks.forEach((it, i) => {
      const x = chart.valToPos(Math.max(it.left, range[0]), "x", true);
      const right = chart.valToPos(Math.min(it.right, range[1]), "x", true);
      const y = chart.valToPos(it.row, "y", true);
      ctx.fillStyle = shades[i];
      ctx.fillRect(x, y + one * 0.08, Math.max(MIN_WIDTH, right - x), Math.max(1, one * 0.84));
      if (it.chunks) return;
      ctx.fillStyle = css("mark");
      for (const at of [it.first, it.lastAt]) {
        if (at !== null && at >= range[0] && at <= range[1]) {
          const mark = Math.min(chart.valToPos(at, "x", true), Math.max(x + MIN_WIDTH, right) - 2);
          ctx.fillRect(mark, y, 2, Math.max(1, one));
        }
      }
    });
    ctx.restore();
  };
  const over = (event, at, row) => {
    const slack = (range[1] - range[0]) / 150;
    const found =
      event &&
      blocks.find(
        (it) => it.row === Math.floor(row) && at >= it.left - slack && at <= it.right + slack,
      );
    if (!found) return tip(null);
    tip(event, ...(found.chunks ? groupLines(profile, found) : lines(found)));
  };
  const draw = () => rows(element, { range, count: number, height, paint, over, label: "chunks" });
  return { element, draw, text: explain(blocks, allocations, groups.length > 0) };
}

function explain(blocks, allocations, grouped) {
  if (grouped) {
    return "Each block is a group of chunks that were allocated close together, from the first allocation to the last free; dark groups have more chunks.";
  }
  const some =
    blocks.length < allocations
      ? `${plural(blocks.length, "chunk")} of ${count(allocations)}, a sample. `
      : "";
  return `${some}Each block is a chunk from allocation to free, dark ones are larger. The lines in it are its first and last access: what lies outside them is waiting or idle.`;
}

const lines = (it) => [
  `${bytes(it.size)}, ${it.freed === null ? "never freed" : `lived ${seconds(it.right - it.left)}`}`,
  `allocated at ${seconds(it.left)}${it.thread === null ? "" : ` by thread ${it.thread}`}`,
  it.first === null
    ? "never accessed"
    : `accessed from ${seconds(it.first)} to ${seconds(it.lastAt)}`,
  `${plural(it.reads, "read")}, ${plural(it.writes, "write")}, ${bytes(it.touched)} touched`,
  it.shared ? "accessed by several threads" : null,
];

const groupLines = (profile, it) => [
  `${plural(it.chunks, "chunk")} from ${seconds(it.left)} to ${seconds(it.right)}`,
  `each lived for ${count(it.life)} events on average`,
];
