// Elements from names and texts. Texts are never markup.

export const h = (name, attributes, ...children) =>
  made(document.createElement(name), attributes, children);

export const svg = (name, attributes, ...children) =>
  made(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

function made(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") {
      for (const [name, it] of Object.entries(value)) element.style.setProperty(name, it);
    } else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((it) => it !== null && it !== undefined));
  return element;
}

// A table whose columns from number `texts` on are numbers.
export const table = (head, texts, ...rows) =>
  h(
    "table",
    null,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        head.map((it, i) => h("th", { scope: "col", class: i < texts ? "" : "number" }, it)),
      ),
    ),
    h("tbody", null, rows),
  );

export const byId = (id) => document.getElementById(id);

// What finds a control again when it has been drawn anew.
function selectorOf({ id, dataset }, group) {
  if (id) return `#${CSS.escape(id)}`;
  const inside = group ? `[aria-label="${CSS.escape(group.ariaLabel)}"] ` : "";
  return dataset.key === undefined ? null : `${inside}[data-key="${CSS.escape(dataset.key)}"]`;
}

// The new children; the control that has the focus keeps it.
export function fill(element, ...children) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const selector = active && selectorOf(active, active.closest("[role=group]"));
  element.replaceChildren(...children.flat(Infinity).filter((it) => it));
  if (selector) element.querySelector(selector)?.focus({ preventScroll: true });
}

// A box beside the pointer.
export function tip(event, ...lines) {
  const box = byId("tip");
  if (!event) {
    box.hidden = true;
    return;
  }
  fill(
    box,
    lines.filter((it) => it).map((line) => h("div", null, line)),
  );
  box.hidden = false;
  const { innerWidth, innerHeight } = globalThis;
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8))}px`;
}

// A row of buttons of which one is chosen.
export function choice(label, options, chosen, choose) {
  const button = ([key, text, title]) =>
    h(
      "button",
      {
        type: "button",
        title,
        "aria-pressed": key === chosen ? "true" : "false",
        "data-key": key,
        onclick: () => choose(key),
      },
      text,
    );
  return h(
    "span",
    { class: "choice", role: "group", "aria-label": label },
    h("span", { class: "label" }, label),
    options.map(button),
  );
}
