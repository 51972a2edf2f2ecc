// Twelve colours of scores, from red, the worst, over yellow to blue. They are ColorBrewer's RdYlBu
// in twelve steps: any two differ by at least 10 (CIE76) for people who see no red, no green or no
// blue, by the matrices of Machado et al. (2009).

export const STEPS = [
  "#a50026",
  "#d22c27",
  "#ef623e",
  "#fb9c59",
  "#fece7f",
  "#fff1aa",
  "#f1fad9",
  "#cdeaf3",
  "#9ccde2",
  "#6ba3cc",
  "#436fb1",
  "#313695",
];
export const UNKNOWN = "#b9bcc2";
export const MARKED = "#7a1fa2";

// From a geometric mean of scores, or null.
export const stepOf = (severity) =>
  severity === null ? null : Math.min(11, Math.floor(severity * 12));
export const colourOf = (severity) => (severity === null ? UNKNOWN : STEPS[stepOf(severity)]);

export function inkOn(colour) {
  const part = (at) => parseInt(colour.slice(at, at + 2), 16);
  const light = 0.299 * part(1) + 0.587 * part(3) + 0.114 * part(5);
  return light > 135 ? "#16181d" : "#ffffff";
}

// A colour of the style sheet, as charts take it: the one of the light or of the dark page.
export function css(name) {
  const probe = document.getElementById("tip");
  const before = probe.style.color;
  probe.style.color = `var(--${name})`;
  const colour = getComputedStyle(probe).color;
  probe.style.color = before;
  return colour;
}
