// Elements, logarithmic scales, and places for labels such that they do not cover one another.

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element; text given as a string becomes its content. */
function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** An HTML element; attributes named `on...` are event listeners. */
function tag(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** A logarithmic scale from [low, high] onto [from, to] in pixels. */
function logScale([low, high], [from, to]) {
  const [a, b] = [Math.log10(low), Math.log10(high)];
  const scale = (value) => from + ((Math.log10(value) - a) / (b - a)) * (to - from);
  scale.low = low;
  scale.high = high;
  scale.clamped = (value) => scale(Math.min(high, Math.max(low, value)));
  return scale;
}

/** The exponents of powers of ten within a scale, spaced evenly so that ticks are at least `apart` pixels apart. */
function powers(scale, apart) {
  const [first, last] = [Math.ceil(Math.log10(scale.low) - 1e-9), Math.floor(Math.log10(scale.high) + 1e-9)];
  const pixels = Math.abs(scale(10) - scale(1));
  const every = Math.max(1, Math.ceil(apart / pixels));
  const out = [];
  for (let k = Math.ceil(first / every) * every; k <= last; k += every) out.push(k);
  return out;
}

/** Axes, grid and titles of a figure; `ticks` gives [value, label] for each axis. */
function axes(size, { x, y }, ticks, titles) {
  const group = shape("g", { class: "axes" });
  for (const [value, label] of ticks.x) {
    group.append(
      shape("line", { class: "grid", x1: x(value), x2: x(value), y1: size.top, y2: size.bottom }),
      shape("text", { x: x(value), y: size.bottom + 18, "text-anchor": "middle" }, label),
    );
  }
  for (const [value, label] of ticks.y) {
    group.append(
      shape("line", { class: "grid", x1: size.left, x2: size.right, y1: y(value), y2: y(value) }),
      shape("text", { x: size.left - 7, y: y(value) + 4, "text-anchor": "end" }, label),
    );
  }
  const middle = (size.left + size.right) / 2;
  group.append(
    shape("rect", {
      class: "frame", x: size.left, y: size.top, width: size.right - size.left, height: size.bottom - size.top,
    }),
    shape("text", { class: "title", x: middle, y: size.bottom + 38, "text-anchor": "middle" }, titles.x),
    shape("text", { class: "title", x: size.left, y: size.top - 10, "text-anchor": "start" }, titles.y),
  );
  return group;
}

/** The frame of a figure, as wide as its place on the page, in units that grow with the size of the page's text. */
function frameOf(place, ratio, least) {
  const zoom = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const width = Math.max(280, Math.round(place.clientWidth / zoom));
  const height = Math.max(least, Math.round(width * ratio));
  return { width, height, left: 62, right: width - 20, top: 30, bottom: height - 48 };
}

/** Puts a drawing into its place, with a name and a description for people who cannot see it. */
function show(place, size, name, description, ...children) {
  const svg = shape("svg", { viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": name });
  svg.append(shape("desc", {}, description), ...children);
  place.replaceChildren(svg);
}

const LETTER = 6.6; // the width of an average letter, in pixels
const BOLD = 7.5; // the same in bold

/** Texts next to points: each takes the first place around its point where it covers nothing. */
class Labels {
  constructor(size) {
    this.size = size;
    this.taken = [];
  }

  /** Reserves a box, so that no text is placed there; with a small weight, rather there than on others. */
  block(x, y, width, height, weight = 1) {
    this.taken.push([x, y, x + width, y + height, weight]);
  }

  /** Whether nothing is in a box [left, top, right, bottom]. */
  isFree(box) {
    return this.overlap(box) === 0;
  }

  /** The area of a box that is already taken, by weight. */
  overlap([a, b, c, d]) {
    const common = (low, high, from, to) => Math.max(0, Math.min(high, to) - Math.max(low, from));
    return this.taken.reduce((sum, o) => sum + o[4] * common(a, c, o[0], o[2]) * common(b, d, o[1], o[3]), 0);
  }

  /** A text element at the distance `apart` from (x, y): the first free place, else the one that covers least. */
  place(text, x, y, attributes = {}, apart = 13) {
    const width = text.length * (attributes.class === "name" ? BOLD : LETTER);
    const around = [];
    for (const rise of [0, 16, -16, 32, -32, 48, -48, 64]) {
      around.push([x + apart, y + rise, "start"], [x - apart, y + rise, "end"]);
    }
    const boxOf = ([at, line, anchor]) => {
      const left = anchor === "start" ? at : at - width;
      return [left, line - 8, left + width, line + 8];
    };
    const inside = ([a, b, c, d]) =>
      a > this.size.left && c < this.size.right && b > this.size.top && d < this.size.bottom;
    const within = around.filter((p) => inside(boxOf(p)));
    const areas = within.map((p) => this.overlap(boxOf(p)));
    const chosen = within[areas.indexOf(Math.min(...areas))] ?? around[0];
    this.taken.push([...boxOf(chosen), 1]);
    return shape("text", { x: chosen[0], y: chosen[1] + 4, "text-anchor": chosen[2], ...attributes }, text);
  }
}

const MARKERS = ["circle", "square", "diamond", "triangle", "down", "cross"];

/** A cross whose arms are a third of its width. */
function crossPath(x, y, r) {
  const [arm, step] = [r / 3, (2 * r) / 3];
  const turns = [[step, 0], [0, -step], [step, 0], [0, step], [step, 0], [0, step], [-step, 0], [0, step], [-step, 0], [0, -step], [-step, 0]];
  return `M${x - r},${y - arm}${turns.map(([dx, dy]) => `l${dx},${dy}`).join("")}z`;
}

/** The symbol of kernel k around (x, y). */
function marker(k, x, y, radius, attributes = {}) {
  const r = radius;
  const paths = {
    square: `M${x - r * 0.9},${y - r * 0.9}h${1.8 * r}v${1.8 * r}h${-1.8 * r}z`,
    diamond: `M${x},${y - 1.25 * r}L${x + 1.25 * r},${y}L${x},${y + 1.25 * r}L${x - 1.25 * r},${y}z`,
    triangle: `M${x},${y - 1.2 * r}L${x + 1.15 * r},${y + 0.9 * r}H${x - 1.15 * r}z`,
    down: `M${x},${y + 1.2 * r}L${x + 1.15 * r},${y - 0.9 * r}H${x - 1.15 * r}z`,
    cross: crossPath(x, y, r),
  };
  const name = MARKERS[k % MARKERS.length];
  if (name === "circle") return shape("circle", { cx: x, cy: y, r, ...attributes });
  return shape("path", { d: paths[name], ...attributes });
}

/** The symbol of kernel k, to be shown next to its name. */
function legend(k) {
  const svg = shape("svg", { class: `legend kernel${k % 6}`, viewBox: "0 0 20 20", "aria-hidden": "true" });
  svg.append(marker(k, 10, 10, 6, { class: "point" }));
  return svg;
}
