// The frames that a flame graph shows. Those that are too narrow to be seen are left out, so that
// the number of sites costs a sum and no more.

import { frameOf } from "./data.js";

// A frame that is narrower than this part of the graph is left out.
const MIN_PART = 1 / 400;
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
    return frame(
      profile,
      node,
      total[node],
      scored[node] ? scores[node] / scored[node] : null,
      children,
    );
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

// The node of each site's place, or of its innermost frame.
function placeNodes(profile) {
  if (profile.placeNodes) return profile.placeNodes;
  const { parent, col } = profile;
  const frameAt = col["node.frame"];
  profile.placeNodes = Uint32Array.from(col["site.node"], (leaf, site) => {
    const place = col["site.place"][site];
    let node = place === 0 ? 0 : leaf;
    while (node > 0 && frameAt[node] !== place) node = parent[node];
    return node || leaf;
  });
  return profile.placeNodes;
}

// Callers above the places that allocate: equal frames of different stacks are one.
export function fromPlaces(profile, admitted, values) {
  const { parent, severity, col } = profile;
  const frameAt = col["node.frame"];
  const sites = [];
  let total = 0;
  for (let site = 0; site < profile.sites; site++) {
    if (!admitted[site] || !values[site]) continue;
    total += values[site];
    sites.push(site);
  }
  const least = total * MIN_PART;
  // Where each site is on its way up.
  const node = placeNodes(profile).slice();
  const sums = new Float64Array(col["frame.line"].length + 1);
  const build = (name, at, members, depth, path) => {
    let [value, scored, scores] = [0, 0, 0];
    const seen = [];
    for (const site of members) {
      value += values[site];
      if (severity[site] >= 0) {
        scored += values[site];
        scores += values[site] * severity[site];
      }
      const frame = frameAt[node[site]];
      if (node[site] === 0) continue;
      if (sums[frame] === 0) seen.push(frame);
      sums[frame] += values[site];
    }
    // Only groups that are wide enough get their members.
    const groups = new Map();
    for (const frame of seen) {
      if (sums[frame] > least && depth < MAX_DEPTH) groups.set(frame, []);
      sums[frame] = 0;
    }
    for (const site of groups.size ? members : []) {
      const group = node[site] === 0 ? undefined : groups.get(frameAt[node[site]]);
      if (!group) continue;
      group.push(site);
      node[site] = parent[node[site]];
    }
    const children = [];
    for (const [frame, group] of groups) {
      const inner = frameOf(profile, frame - 1);
      children.push(build(inner.short, inner, group, depth + 1, `${path}.${frame}`));
    }
    children.sort((a, b) => b.value - a.value);
    return {
      id: path,
      name,
      frame: at,
      value,
      children,
      severity: scored ? scores / scored : null,
      sites: members.length <= 50 ? members : [],
    };
  };
  return build("all places", null, sites, 0, "p");
}

// The admitted sites below a node, those of most value first.
export function sitesBelow(profile, admitted, values, node, most) {
  const below = new Uint8Array(profile.parent.length);
  below[node] = 1;
  for (let i = node + 1; i < below.length; i++) below[i] = below[profile.parent[i]];
  const leaves = profile.col["site.node"];
  const first = (sites) => sites.sort((a, b) => values[b] - values[a]).slice(0, most);
  let found = [];
  let least = 0;
  for (let site = 0; site < profile.sites; site++) {
    if (!admitted[site] || values[site] <= least || !below[leaves[site]]) continue;
    found.push(site);
    // Most sites are worth less than those that are kept: they cost a comparison.
    if (found.length < 8 * most) continue;
    found = first(found);
    least = values[found.at(-1)];
  }
  return first(found);
}
