// Which bytes of a site's chunks are read and written, with the names of fields.

import { h, tip } from "./dom.js";
import { fieldAt, typeOf } from "./data.js";
import { count, plural, were } from "./units.js";

const PER_ROW = 16;

// Runs of bytes that belong together: fields of each element, or rows of sixteen bytes.
function rowsOf(profile, site, size) {
  const [, elementSize, fields] = typeOf(profile, site) ?? ["", null, []];
  const rows = [];
  if (fields.length && elementSize) {
    const several = size > elementSize;
    const sorted = [...fields].sort((a, b) => a[2] - b[2]);
    for (let start = 0, i = 0; start < size; start += elementSize, i += 1) {
      let at = start;
      for (const [name, type, offset, len] of sorted) {
        if (start + offset < at || len === 0) continue;
        if (start + offset > at)
          rows.push({ from: at, to: start + offset, name: "", type: "padding" });
        at = Math.min(size, start + offset + len);
        rows.push({ from: start + offset, to: at, name: several ? `[${i}].${name}` : name, type });
      }
      const end = Math.min(size, start + elementSize);
      if (at < end) rows.push({ from: at, to: end, name: "", type: "padding" });
    }
  } else {
    for (let from = 0; from < size; from += PER_ROW) {
      rows.push({
        from,
        to: Math.min(size, from + PER_ROW),
        name: fieldAt(profile, site, from),
        type: "",
      });
    }
  }
  return rows.filter((row) => row.from < size);
}

function countsOf(profile, site) {
  const { col, starts } = profile;
  const [reads, writes] = [[], []];
  for (let i = starts.bytes[site]; i < starts.bytes[site + 1]; i++) {
    for (let n = 0; n < col["bytes.len"][i]; n++) {
      reads.push(col["bytes.reads"][i]);
      writes.push(col["bytes.writes"][i]);
    }
  }
  return [reads, writes];
}

export function bytesView(profile, site) {
  const [reads, writes] = countsOf(profile, site);
  if (!profile.accesses || !reads.length) return null;
  const most = Math.max(1, ...reads, ...writes);
  // By its number of digits: one access shows, and a million does not hide a thousand.
  const part = (number) => (number ? 18 + 82 * (Math.log1p(number) / Math.log1p(most)) : 0);
  const cell = (kind, numbers) => (at) =>
    h("i", {
      class: `byte ${kind}${numbers[at] ? "" : " never"}`,
      "data-at": at,
      style: numbers[at] ? { "--part": `${part(numbers[at])}%` } : {},
    });
  const cells = (kind, numbers, { from, to }) =>
    h(
      "span",
      { class: "cells" },
      Array.from({ length: to - from }, (_, i) => from + i).map(cell(kind, numbers)),
    );
  const sum = (numbers, { from, to }) => {
    const own = numbers.slice(from, to);
    const [low, high] = [Math.min(...own), Math.max(...own)];
    return low === high ? count(low) : `${count(low)}–${count(high)}`;
  };
  const row = (it) =>
    h(
      "tr",
      it.type === "padding" ? { class: "padding" } : null,
      h("td", { class: "number" }, String(it.from)),
      h(
        "th",
        { scope: "row" },
        h("code", null, it.name || it.type),
        " ",
        it.name && it.type ? h("code", { class: "type" }, it.type) : null,
      ),
      h("td", null, cells("read", reads, it)),
      h("td", { class: "number" }, sum(reads, it)),
      h("td", null, cells("write", writes, it)),
      h("td", { class: "number" }, sum(writes, it)),
    );
  const table = h(
    "table",
    {
      class: "bytes",
      onmousemove: (event) => {
        const at = event.target.dataset?.at;
        if (at === undefined) tip(null);
        else
          tip(
            event,
            `byte ${at}, ${fieldAt(profile, site, Number(at))}`,
            `${plural(reads[at], "read")}, ${plural(writes[at], "write")}`,
          );
      },
      onmouseleave: () => tip(null),
    },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ["byte", "field", "reads", "each", "writes", "each"].map((it) =>
          h("th", { scope: "col" }, it),
        ),
      ),
    ),
    h("tbody", null, rowsOf(profile, site, reads.length).map(row)),
  );
  const unread = reads.filter((it) => !it).length;
  return [
    h(
      "p",
      { class: "about" },
      `A square is a byte of the ${count(reads.length)} that each chunk has; hollow ones were never accessed. ${unread ? `${were(unread)} never read.` : "All were read."}`,
    ),
    h("div", { class: "wide" }, table),
  ];
}
