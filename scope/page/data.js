// The profile, from the columns that `src/views/page/columns.rs` writes.

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Seven bits a byte, the lowest first; numbers above 2^53 are rounded.
function numbersFrom(bytes, start, len) {
  const numbers = new Float64Array(len);
  let at = start;
  for (let i = 0; i < len; i++) {
    let byte = bytes[at++];
    let number = byte & 0x7f;
    let scale = 128;
    while (byte >= 0x80) {
      byte = bytes[at++];
      number += (byte & 0x7f) * scale;
      scale *= 128;
    }
    numbers[i] = number;
  }
  return [numbers, at];
}

function floatsFrom(numbers) {
  const bits = Uint32Array.from(numbers, (it) => it << 12);
  return Float64Array.from(new Float32Array(bits.buffer));
}

// Where each list begins.
function startsOf(lengths) {
  const starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = starts[i] + lengths[i];
  return starts;
}

// Sums over the items of each list: times are stored as distances.
function addUp(values, starts, first) {
  for (let list = 0; list + 1 < starts.length; list++) {
    let sum = first ? first[list] : 0;
    for (let i = starts[list]; i < starts[list + 1]; i++) values[i] = sum += values[i];
  }
}

export async function readProfile(text) {
  const bytes = await inflated(fromBase64(text.trim()));
  const headLen = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headLen)));
  const col = {};
  let at = 4 + headLen;
  for (const [name, kind, len] of head.columns) {
    let numbers;
    [numbers, at] = numbersFrom(bytes, at, len);
    col[name] = kind === "floats" ? floatsFrom(numbers) : numbers;
  }
  const profile = { ...head, col, starts: {}, sites: col["site.node"].length };
  for (const name of [
    "curve",
    "threads",
    "curves",
    "resident",
    "chunks",
    "groups",
    "sizes",
    "lives",
    "bytes",
  ]) {
    profile.starts[name] = startsOf(col[name]);
  }
  for (const name of [...(head.old ? ["before", "befores"] : []), ...(head.pages ? ["pages"] : [])]) {
    profile.starts[name] = startsOf(col[name]);
  }
  const { starts } = profile;
  const first = col["site.first_time"];
  addUp(col["curve.time"], starts.curve);
  addUp(col["threads.time"], starts.threads);
  addUp(col["curves.time"], starts.curves, first);
  addUp(col["chunks.after"], starts.chunks, first);
  addUp(col["groups.after"], starts.groups, first);
  for (const name of ["curve", "threads", "curves"]) {
    const [usable, peak] = [col[`${name}.usable`], col[`${name}.peak`]];
    for (let i = 0; i < usable.length; i++) peak[i] += usable[i];
  }
  const clock = col.clock;
  for (let i = 1; i < clock.length; i++) clock[i] += clock[i - 1];
  const parent = new Uint32Array(col["node.up"].length);
  for (let i = 0; i < parent.length; i++) parent[i] = i - col["node.up"][i];
  profile.parent = parent;
  profile.ends = first.map((it, i) => it + col["site.end"][i]);
  profile.severity = severities(col);
  profile.isScored = profile.severity.some((it) => it >= 0);
  // Files of other tools lack much.
  profile.isOurs = /^\d/.test(head.tool);
  profile.waits = new Float64Array(profile.sites);
  head.misses?.sites.forEach((site, i) => {
    profile.waits[site] = head.misses.ns[i];
  });
  return profile;
}

// The geometric mean of the scores that are known; -1 if none is.
function severities(col) {
  const severity = new Float64Array(col["site.life"].length);
  const columns = [col["site.life"], col["site.usage"], col["site.usefulLife"]];
  for (let i = 0; i < severity.length; i++) {
    let product = 1;
    let known = 0;
    for (const column of columns) {
      if (column[i] > 0) {
        product *= (column[i] - 1) / 1000;
        known += 1;
      }
    }
    severity[i] = known ? product ** (1 / known) : -1;
  }
  return severity;
}

// The last index whose value is not larger, or -1.
export function lastAtMost(sorted, value, from = 0, to = sorted.length) {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function between(x, xs, ys, endX, endY) {
  const i = lastAtMost(xs, x);
  const [x0, y0] = i < 0 ? [1, 0] : [xs[i], ys[i]];
  const [x1, y1] = i + 1 < xs.length ? [xs[i + 1], ys[i + 1]] : [endX, Math.max(endY, y0)];
  return y0 + (y1 - y0) * Math.min(1, Math.max(0, x - x0) / Math.max(1, x1 - x0));
}

// Events to seconds, and back.
export const toSeconds = (profile, time) =>
  between(time, profile.col["curve.time"], profile.col.clock, profile.end, profile.seconds * 1e9) /
  1e9;
export function toEvents(profile, at) {
  const times = profile.col["curve.time"];
  const i = lastAtMost(profile.col.clock, at * 1e9);
  const ns = profile.col.clock;
  const [n0, t0] = i < 0 ? [0, 1] : [ns[i], times[i]];
  const [n1, t1] =
    i + 1 < ns.length ? [ns[i + 1], times[i + 1]] : [profile.seconds * 1e9, profile.end];
  return t0 + (t1 - t0) * Math.min(1, Math.max(0, at * 1e9 - n0) / Math.max(1, n1 - n0));
}

// A curve of the older profile: seconds and bytes.
export function beforeOf({ col, starts }, name, list) {
  const part = (of) =>
    Array.from(col[`${name}.${of}`].subarray(...starts[name].slice(list, list + 2)));
  return [part("ns").map((it) => it / 1e9), part("peak")];
}

// What a frame is called: its function, and where it is.
export function frameOf(profile, frame) {
  const { col, strings } = profile;
  const file = strings[col["frame.file"][frame]];
  const line = col["frame.line"][frame];
  const module = strings[col["frame.module"][frame]];
  return {
    id: frame,
    function: strings[col["frame.function"][frame]],
    short: strings[col["frame.short"][frame]],
    file,
    line,
    module,
    inlined: col["frame.inlined"][frame] === 1,
    where: file ? (line ? `${file}:${line}` : file) : `in ${module || "?"}`,
  };
}

// Frames of a site, innermost first.
export function stackOf(profile, site) {
  const frames = [];
  for (let node = profile.col["site.node"][site]; node > 0; node = profile.parent[node]) {
    frames.push(frameOf(profile, profile.col["node.frame"][node] - 1));
  }
  return frames;
}

// The innermost frame of the user's own code, or the innermost of all.
export function placeOf(profile, site) {
  const place = profile.col["site.place"][site];
  if (place > 0) return frameOf(profile, place - 1);
  return stackOf(profile, site)[0] ?? { function: "unknown", short: "unknown", where: "" };
}

// The line of a package that allocates, if the site's place is its caller's.
export function libraryOf(profile, site) {
  const frame = profile.col["site.library"][site];
  return frame > 0 ? frameOf(profile, frame - 1) : null;
}

export const typeOf = (profile, site) => profile.types[profile.col["site.type"][site] - 1];
export const typeName = (profile, site) => typeOf(profile, site)?.[0] ?? "unknown";

// The field at an offset in the elements of a site, or the offset.
export function fieldAt(profile, site, offset) {
  const [, size, fields] = typeOf(profile, site) ?? ["", null, []];
  const inside = size ? offset % size : offset;
  const field = fields.find(([, , start, len]) => start <= inside && inside < start + len);
  return field ? field[0] : `+${inside}`;
}

const known = (step) => (step > 0 ? (step - 1) / 1000 : null);
export const scoresOf = ({ col, severity }, site) => ({
  life: known(col["site.life"][site]),
  usage: known(col["site.usage"][site]),
  useful: known(col["site.usefulLife"][site]),
  all: severity[site] < 0 ? null : severity[site],
});
