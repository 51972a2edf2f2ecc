// Which sites the filters admit, and what each is worth by a metric.

import { lastAtMost, toEvents } from "./data.js";

export const METRICS = {
  peak: { name: "peak", unit: "bytes", title: "Bytes at the site's own peak" },
  at: { name: "bytes at a time", unit: "bytes", title: "Bytes allocated at the chosen time" },
  allocations: { name: "allocations", unit: "count", title: "Chunks in the run or the span" },
  drag: { name: "drag", unit: "byteSeconds", title: "Bytes times seconds after the last access" },
  misses: { name: "misses", unit: "ns", title: "Simulated time of waiting for memory" },
};

// Whether a function of each site's stack contains a text, in any case.
function byFunction(profile, text) {
  const wanted = text.toLowerCase();
  profile.lower ??= profile.strings.map((it) => it.toLowerCase());
  const hit = Uint8Array.from(profile.lower, (it) => it.includes(wanted));
  const { col, parent } = profile;
  const functions = col["frame.function"];
  const nodes = new Uint8Array(parent.length);
  for (let node = 1; node < nodes.length; node++) {
    nodes[node] = nodes[parent[node]] | hit[functions[col["node.frame"][node] - 1]];
  }
  return (site) => nodes[col["site.node"][site]] === 1;
}

function byType(profile, text) {
  const wanted = text.toLowerCase();
  const hit = profile.types.map(([name]) => name.toLowerCase().includes(wanted));
  const types = profile.col["site.type"];
  const unknown = "unknown".includes(wanted);
  return (site) => (types[site] > 0 ? hit[types[site] - 1] : unknown);
}

function byThread(profile, text) {
  const bit = Math.min(63, Number(text));
  const [column, place] = bit < 32 ? ["site.threadsLow", bit] : ["site.threadsHigh", bit - 32];
  const masks = profile.col[column];
  return (site) => (masks[site] / 2 ** place) % 2 >= 1;
}

// Whether a chunk was alive in the span, as far as the site's curve shows.
function bySpan(profile, span) {
  const allocated = inSpan(profile, span, "allocations");
  const most = inSpan(profile, span, "peak");
  const { col, ends } = profile;
  const first = col["site.first_time"];
  return (site) =>
    first[site] <= span[1] && ends[site] >= span[0] && (allocated[site] > 0 || most[site] > 0);
}

// The sum of allocations in a span, or the most bytes.
function inSpan(profile, [from, to], part) {
  const { col, starts } = profile;
  const [times, values] = [col["curves.time"], col[`curves.${part}`]];
  const results = new Float64Array(profile.sites);
  const isSum = part === "allocations";
  for (let site = 0; site < profile.sites; site++) {
    let result = 0;
    for (let i = starts.curves[site]; i < starts.curves[site + 1]; i++) {
      if (times[i] > to) break;
      if (times[i] < from) {
        // The value before the span holds in it.
        if (!isSum) result = col["curves.usable"][i];
      } else if (isSum) result += values[i];
      else if (values[i] > result) result = values[i];
    }
    results[site] = result;
  }
  return results;
}

function atTime(profile, time) {
  const { col, starts } = profile;
  const bytes = new Float64Array(profile.sites);
  for (let site = 0; site < profile.sites; site++) {
    const start = starts.curves[site];
    const i = lastAtMost(col["curves.time"], time, start, starts.curves[site + 1]);
    if (i >= start) bytes[site] = col["curves.usable"][i];
  }
  return bytes;
}

// The span in events, or null.
export function spanOf(profile, state) {
  if (state.from === "" && state.to === "") return null;
  const from = state.from === "" ? 0 : toEvents(profile, Number(state.from));
  const to = state.to === "" ? Infinity : toEvents(profile, Number(state.to));
  return [from, to];
}

const kept = { key: null, admitted: null, metricKey: null, values: null };

// A byte for each site: 1 if all filters admit it.
export function admitted(profile, state) {
  const key = [state.fn, state.type, state.thread, state.from, state.to].join("\0");
  if (kept.key === key) return kept.admitted;
  const tests = [];
  if (state.fn) tests.push(byFunction(profile, state.fn));
  if (state.type) tests.push(byType(profile, state.type));
  if (state.thread !== "") tests.push(byThread(profile, state.thread));
  const span = spanOf(profile, state);
  if (span) tests.push(bySpan(profile, span));
  const sites = new Uint8Array(profile.sites);
  for (let site = 0; site < sites.length; site++) {
    sites[site] = tests.every((test) => test(site)) ? 1 : 0;
  }
  Object.assign(kept, { key, admitted: sites });
  return sites;
}

// The time of `bytes at a time`, in seconds: the peak of the process unless one is chosen.
export const chosenTime = (profile, state) =>
  state.at === "" ? profile.peakSeconds : Number(state.at);

// What each site is worth, whether it is admitted or not.
export function valuesOf(profile, state, metric = state.metric) {
  const span = spanOf(profile, state);
  const key = [metric, state.at, span].join("\0");
  if (kept.metricKey === key) return kept.values;
  const { col } = profile;
  const whole = {
    peak: col["site.peak_usable"],
    allocations: col["site.allocations"],
    drag: col["site.drag"],
    misses: profile.waits,
  };
  let values = whole[metric] ?? whole.peak;
  if (metric === "at") values = atTime(profile, toEvents(profile, chosenTime(profile, state)));
  else if (span && (metric === "peak" || metric === "allocations")) {
    values = inSpan(profile, span, metric);
  }
  Object.assign(kept, { metricKey: key, values });
  return values;
}
