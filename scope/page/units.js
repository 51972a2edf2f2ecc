// Numbers as people read them, as in the terminal.

function prefixed(number, unit) {
  let scaled = number;
  for (const prefix of ["", "k", "M", "G", "T"]) {
    // What would be rounded up to 1000 goes on.
    if (scaled < 999.5) {
      const whole = prefix === "" && Number.isInteger(scaled);
      const digits = whole ? 0 : scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
      return `${scaled.toFixed(digits)} ${prefix}${unit}`.trimEnd();
    }
    scaled /= 1000;
  }
  return `${scaled.toFixed(0)} P${unit}`;
}

export const bytes = (number) => prefixed(number, "B");
export const byteSeconds = (number) => prefixed(number, "B*s");
export const count = (number) => Math.round(number).toLocaleString("en-US");
export const shortCount = (number) => (number < 1e6 ? count(number) : prefixed(number, ""));
export const percent = (part) => `${(part * 100).toFixed(part > 0 && part < 0.0995 ? 1 : 0)} %`;
export const plural = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
export const were = (number) => `${count(number)} ${number === 1 ? "was" : "were"}`;
export const moment = (ms) => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
export const score = (value) => (value === null ? "–" : value.toFixed(2));

export function seconds(number) {
  if (number === 0) return "0 s";
  const [scaled, unit] =
    number >= 1
      ? [number, "s"]
      : number >= 1e-3
        ? [number * 1e3, "ms"]
        : number >= 1e-6
          ? [number * 1e6, "µs"]
          : [number * 1e9, "ns"];
  return `${scaled.toFixed(scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0)} ${unit}`;
}
