// What is shown, which the fragment of the address has, so that a link leads back to it.

const DEFAULTS = {
  view: "findings",
  site: "",
  region: "",
  count: "all",
  part: "",
  fn: "",
  type: "",
  thread: "",
  from: "",
  to: "",
  metric: "peak",
  form: "icicle",
  callers: "",
  at: "",
  zoom: "",
  search: "",
  sort: "saving",
  curves: "process",
  theme: "",
};

export const state = { ...DEFAULTS };
const listeners = [];
// By key, whether the profile has a value.
let isKnown = {};

function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(DEFAULTS)) {
    const value = given.get(key) ?? DEFAULTS[key];
    state[key] = isKnown[key]?.(value) === false ? DEFAULTS[key] : value;
  }
  if (state.view === "site" && state.site === "") state.view = DEFAULTS.view;
}

function fragment() {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== DEFAULTS[key]) given.set(key, value);
  }
  return `#${given}`;
}

// `changed` gets the names of what is different.
export const listen = (changed) => listeners.push(changed);

export function set(change) {
  const names = Object.keys(change).filter((key) => state[key] !== String(change[key]));
  if (!names.length) return;
  for (const key of names) state[key] = String(change[key]);
  // Going back leads to another view, not to each letter of a filter.
  const isStep = names.includes("view") || names.includes("site");
  history[isStep ? "pushState" : "replaceState"](null, "", fragment());
  listeners.forEach((changed) => changed(new Set(names)));
}

export const linkTo = (change) => {
  const given = new URLSearchParams(fragment().slice(1));
  Object.entries(change).forEach(([key, value]) => given.set(key, value));
  return `#${given}`;
};

// What is shown first, and which values of a link make sense: the others are left out.
export function begin(view, known) {
  DEFAULTS.view = view;
  isKnown = known;
  read();
  const reread = () => {
    read();
    listeners.forEach((changed) => changed(new Set(Object.keys(DEFAULTS))));
  };
  addEventListener("popstate", reread);
}
