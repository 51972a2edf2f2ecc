// The frames that a flame graph shows. Those that are too narrow to be seen are left out, so that
// the number of sites costs a sum and no more.

import { frameOf } from "./data.js";

// A frame that is narrower than this part of the graph is left out.
const MIN_PART = 1 / 700;
const MAX_DEPTH = 200;

function childrenOf(profile) {
  if (profile.children) return profile.children;
  const { parent } = profile;
  const starts = new Uint32Array(parent.length + 1);
  for (let node = 1; node < parent.length; node++) starts[parent[node] + 1] += 1;
  for (let node = 0; node < parent.length; node++) starts[node + 1] += starts[node];
  const next = starts.slice();
  const nodes = new Uint32Array(parent.length);
  for (let node = 1; node < parent.length; node++) nodes[next[parent[node]]++] = node;
  profile.children = { starts, nodes };
  return profile.children;
}

// Callees above callers: node 0 is the process, and `zoom` the node that takes the whole width.
export function fromRoot(profile, admitted, values, zoom) {
  const { parent, severity, col } = profile;
  const total = new Float64Array(parent.length);
  const scored = new Float64Array(parent.length);
  const scores = new Float64Array(parent.length);
  for (let site = 0; site < profile.sites; site++) {
    const value = admitted[site] ? values[site] : 0;
    if (!value) continue;
    const node = col["site.node"][site];
    total[node] += value;
    if (severity[site] >= 0) {
      scored[node] += value;
      scores[node] += value * severity[site];
    }
  }
  for (let node = parent.length - 1; node > 0; node--) {
    const up = parent[node];
    total[up] += total[node];
    scored[up] += scored[node];
    scores[up] += scores[node];
  }
  const root = total[zoom] > 0 ? zoom : 0;
  const { starts, nodes } = childrenOf(profile);
  const least = total[root] * MIN_PART;
  const build = (node, depth) => {
    const children = [];
    for (let i = starts[node]; i < starts[node + 1] && depth < MAX_DEPTH; i++) {
      if (total[nodes[i]] > least) children.push(build(nodes[i], depth + 1));

    }
    children.sort((a, b) => b.value - a.value);
    return frame(profile, node, total[node], scored[node] ? scores[node] / scored[node] : null,
      children);
  };
  let top = build(root, 0);
  for (let node = root; node !== 0; node = parent[node]) {
    const up = frame(profile, parent[node], top.value, top.severity, [top]);
    up.above = true;
    top = up;
  }
  return top;
}

function frame(profile, node, value, severity, children) {
  const at = node === 0 ? null : frameOf(profile, profile.col["node.frame"][node] - 1);
  return { id: node, name: at ? at.short : "all sites", frame: at, value, severity, children };
}

// Callers above the places that allocate: equal frames of different stacks are one.
export function fromPlaces(profile, admitted, values) {
  const { parent, severity, col } = profile;
  const frameAt = col["node.frame"];
  let sites = [];
  let total = 0;
  for (let site = 0; site < profile.sites; site++) {
    if (!admitted[site] || !values[site]) continue;
    total += values[site];
    sites.push(site);
  }
  const startOf = (site) => {
    const place = col["site.place"][site];
    const leaf = col["site.node"][site];
    if (place === 0) return leaf;
    let node = leaf;
    while (node > 0 && frameAt[node] !== place) node = parent[node];
    return node || leaf;
  };
  const least = total * MIN_PART;
  const build = (name, at, members, depth, path) => {
    const groups = new Map();
    let [value, scored, scores] = [0, 0, 0];
    for (const [site, node] of members) {
      value += values[site];
      if (severity[site] >= 0) {
        scored += values[site];
        scores += values[site] * severity[site];
      }
      if (node === 0 || depth >= MAX_DEPTH) continue;
      const group = groups.get(frameAt[node]) ?? { value: 0, members: [] };
      group.value += values[site];
      group.members.push([site, parent[node]]);
      groups.set(frameAt[node], group);
    }
    const children = [];
    for (const [id, group] of groups) {
      if (group.value <= least) continue;
      const inner = frameOf(profile, id - 1);
      children.push(build(inner.short, inner, group.members, depth + 1, `${path}.${id}`));
    }
    children.sort((a, b) => b.value - a.value);
    return { id: path, name, frame: at, value, children, severity: scored ? scores / scored : null,
      sites: members.length <= 50 ? members.map(([site]) => site) : [] };
  };
  const all = sites.map((site) => [site, startOf(site)]);
  return build("all places", null, all, 0, "p");
}

// The admitted sites below a node, those of most value first.
export function sitesBelow(profile, admitted, values, node, most) {
  const below = new Uint8Array(profile.parent.length);
  below[node] = 1;
  for (let i = node + 1; i < below.length; i++) below[i] = below[profile.parent[i]];
  const found = [];
  for (let site = 0; site < profile.sites; site++) {
    if (admitted[site] && values[site] > 0 && below[profile.col["site.node"][site]]) {
      found.push(site);
    }
  }
  return found.sort((a, b) => values[b] - values[a]).slice(0, most);
}
