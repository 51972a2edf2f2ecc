// Charts by uPlot, in the colours of the page.

import { h } from "./dom.js";
import { css } from "./colours.js";
import { bytes, count, seconds } from "./units.js";

const live = new Set();

// A time in as many digits as tell it from the next tick.
function tick(at, step) {
  const [scale, unit] =
    step >= 0.05 ? [1, "s"] : step >= 5e-5 ? [1e3, "ms"] : step >= 5e-8 ? [1e6, "µs"] : [1e9, "ns"];
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step * scale) - 1e-9)));
  return `${(at * scale).toFixed(digits)} ${unit}`;
}

function axis(values, extra) {
  return {
    stroke: css("muted"),
    font: "11px system-ui, sans-serif",
    gap: 4,
    grid: { stroke: css("grid"), width: 1 },
    ticks: { stroke: css("grid"), width: 1, size: 4 },
    values: (_, ticks, _axis, _space, step) =>
      ticks.map((it) => (it === null ? "" : values(it, step))),
    ...extra,
  };
}

// Puts a chart into an element, and makes it as wide as that.
function place(element, options, data, height) {
  const width = Math.max(200, element.clientWidth || 600);
  const chart = new uPlot({ width, height, ...options }, data, element);
  live.add(chart);
  return chart;
}

// Charts that have left the document hold listeners of the window.
export function sweep() {
  for (const chart of live) {
    if (!chart.root.isConnected) {
      chart.destroy();
      live.delete(chart);
    }
  }
}

export function resize() {
  for (const chart of live) {
    const width = chart.root.parentElement?.clientWidth;
    if (width) chart.setSize({ width, height: chart.height });
  }
}

export const stepped = (label, colour, more) => ({
  label,
  stroke: css(colour),
  width: 1.5,
  paths: uPlot.paths.stepped({ align: 1 }),
  spanGaps: true,
  points: { show: false },
  value: (_, value) => (value === null || value === undefined ? "–" : bytes(value)),
  ...more,
});

// Bytes over seconds. `span` is drawn as chosen, `choose` is called with another, and `point` with
// a time.
export function curves(element, data, series, { height, span, mark, choose, point, range }) {
  const pick = (chart) => {
    const { left, width } = chart.select;
    if (width > 3) choose(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
  };
  const draw = (chart) => {
    if (mark === null || mark === undefined) return;
    const x = Math.round(chart.valToPos(mark, "x", true));
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.strokeStyle = css("accent");
    ctx.lineWidth = 2;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  };
  const chart = place(
    element,
    {
      scales: {
        x: { time: false, range: range ? () => range : undefined },
        y: { range: (_, low, high) => [0, high || 1] },
      },
      axes: [axis(tick, { size: 26 }), axis(bytes, { size: 62 })],
      series: [{ label: "time", value: (_, at) => (at === null ? "–" : seconds(at)) }, ...series],
      cursor: { drag: { x: Boolean(choose), y: false, setScale: false }, points: { size: 6 } },
      legend: { live: true },
      hooks: { setSelect: choose ? [pick] : [], draw: [draw] },
    },
    data,
    height,
  );
  // The library's legend is for the mouse.
  for (const label of chart.root.querySelectorAll(".u-series:not(:first-child) th")) {
    Object.assign(label, { tabIndex: 0, role: "button" });
    label.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        label.click();
      }
    });
  }
  if (choose) {
    const [low, high] = [chart.scales.x.min, chart.scales.x.max];
    if (span) {
      const [left, right] = [Math.max(low, span[0]), Math.min(high, span[1])].map((it) =>
        chart.valToPos(it, "x"),
      );
      chart.setSelect(
        { left, width: Math.max(2, right - left), top: 0, height: chart.over.clientHeight },
        false,
      );
    }
    let down = null;
    chart.over.addEventListener("mousedown", (event) => {
      down = event.clientX;
    });
    chart.over.addEventListener("click", (event) => {
      if (down !== null && Math.abs(event.clientX - down) < 3) {
        point?.(chart.posToVal(event.offsetX, "x"));
      }
    });
  }
  return chart;
}

// Counts by power of two: `bits` is the number of bits of a value.
export function distribution(element, pairs, unit, height = 130) {
  const first = Math.min(...pairs.map(([bits]) => bits));
  const last = Math.max(...pairs.map(([bits]) => bits));
  const xs = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const counts = new Map(pairs);
  const from = (bits) => (bits <= 0 ? 0 : 2 ** (bits - 1));
  const name = (bits) => (Number.isInteger(bits) ? unit(from(bits)) : "");
  place(
    element,
    {
      scales: {
        x: { time: false, range: () => [first - 0.7, last + 0.7] },
        y: { range: (_, low, high) => [0, high || 1] },
      },
      axes: [
        axis(name, { size: 26, space: 52, incrs: [1, 2, 4, 8, 16] }),
        axis(count, { size: 62 }),
      ],
      series: [
        {
          label: "from",
          value: (_, bits) =>
            bits === null
              ? "–"
              : `${unit(from(bits))} to ${unit(from(bits + 1) - (bits > 0 ? 1 : 0))}`,
        },
        {
          label: "chunks",
          fill: css("bar"),
          stroke: css("bar"),
          width: 0,
          paths: uPlot.paths.bars({ size: [0.8, 60] }),
          points: { show: false },
          value: (_, value) => (value === null || value === undefined ? "–" : count(value)),
        },
      ],
      cursor: { drag: { x: false, y: false }, points: { show: false } },
    },
    [xs, xs.map((bits) => counts.get(bits) ?? 0)],
    height,
  );
}

// Rectangles over time, one row each, which `paint` draws. `over` gets the row below the pointer.
export function rows(element, { range, count: number, height, paint, over, label }) {
  const chart = place(
    element,
    {
      scales: { x: { time: false, range: () => range }, y: { range: () => [number, 0] } },
      axes: [axis(tick, { size: 26 }), { show: false }],
      series: [{ label: "time" }, { label, paths: () => null, points: { show: false } }],
      cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
      legend: { show: false },
      hooks: { draw: [paint] },
    },
    [range, [0, 0]],
    height,
  );
  chart.over.addEventListener("mousemove", (event) => {
    over(event, chart.posToVal(event.offsetX, "x"), chart.posToVal(event.offsetY, "y"));
  });
  chart.over.addEventListener("mouseleave", () => over(null));
  return chart;
}

// A box for a chart.
export const box = (label) => h("div", { class: "chart", role: "img", "aria-label": label });
