// Numbers as people write them, by the same rules as on the command line.

/** A number with `digits` significant digits, without an exponent for everyday magnitudes. */
function showNumber(value, digits = 4) {
  const size = Math.abs(value);
  if (value === 0 || !Number.isFinite(value)) return String(value);
  if (size < 1e-4 || size >= 1e15) {
    return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
  }
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const text = value.toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const DECIMAL = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const BINARY = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]];

/** A number in the largest of `units` (each a thousand of the next) in which it is at least 1; null if it is below all. */
function inUnits(value, units, digits) {
  const k = units.findIndex(([factor]) => Math.abs(value) >= factor * (1 - 1e-12));
  if (k < 0) return null;
  const [factor, unit] = units[k];
  const text = showNumber(value / factor, digits);
  if (k === 0 || Math.abs(Number(text)) < 1000) return `${text} ${unit}`;
  const [larger, name] = units[k - 1]; // 999 960 B would be 1000 kB in four digits: it is 1 MB
  return `${showNumber(value / larger, digits)} ${name}`;
}

function scaled(value, unit, digits = 4) {
  const units = DECIMAL.map(([factor, prefix]) => [factor, `${prefix}${unit}`]);
  return inUnits(value, units, digits) ?? `${showNumber(value, digits)} ${unit}`;
}

const showRate = (value, operation = "FLOP") => scaled(value, `${operation}/s`);
const showWork = (value, operation = "FLOP") => scaled(value, operation);
const showBandwidth = (value, digits) => scaled(value, "B/s", digits);
const showBytes = (value, digits) => scaled(value, "B", digits);

/** A capacity: in binary multiples if that takes few digits, else in decimal ones. */
function showSize(value) {
  const [factor, unit] = BINARY.find(([f]) => value >= f) ?? [1, "B"];
  if (Number.isInteger((value / factor) * 4)) return `${showNumber(value / factor, 6)} ${unit}`;
  return scaled(value, "B", 6);
}

function showTime(seconds, digits = 4) {
  if (seconds === 0) return "0 s";
  return inUnits(seconds, TIMES, digits) ?? `${seconds.toPrecision(digits)} s`;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A power of ten, as written at a tick. */
function showPower(exponent) {
  if (exponent >= -2 && exponent <= 3) return String(Number(`1e${exponent}`));
  const digits = [...String(Math.abs(exponent))].map((d) => SUPERSCRIPTS[d]).join("");
  return `10${exponent < 0 ? "⁻" : ""}${digits}`;
}

/** A whole number with separated thousands. */
function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A ratio of two times, such as `2.5×` or `1 200×`. */
function showFactor(value) {
  if (value >= 1000) return `${grouped(Math.round(value))}×`;
  return `${showNumber(value, value < 10 ? 2 : 3)}×`;
}

/** A number, or the two numbers between which it lies; if `high` is not finite, `≥` and the lower one. */
function showSpan(low, high, show) {
  const [from, to] = [show(low), show(high)];
  if (from === to) return from;
  return Number.isFinite(high) ? `${from} to ${to}` : `≥ ${from}`;
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}
