"use strict";
// What the answers of the service look like in an editor, as Markdown, and where a kernel stands in a text.

function shown(entry, unit) {
  if (!entry) return "no form";
  if (entry.expr === null || entry.expr === undefined) return entry.note || "no form";
  const value = typeof entry.value === "number" ? ` = ${entry.value}` : "";
  const assumed = entry.assumes ? ` (if ${entry.assumes})` : "";
  return `\`${entry.expr}\`${value} ${unit}${assumed}`;
}

/** W, Q and I of a derivation, and the plateaus of Q(Z). */
function hoverText(found) {
  const lines = [
    `**${found.kernel}**`,
    "",
    `- W: ${shown(found.work.total, "operations")}`,
    `- Q: ${shown(found.bytes, "B")}`,
    `- I: ${shown(found.intensity, "operations per byte")}`,
  ];
  for (const plateau of found.regimes || []) {
    lines.push(`- Q from Z = ${shown(plateau.from_bytes, "B")} on: ${shown(plateau.bytes, "B")}`);
  }
  return lines.join("\n");
}

/** The lines of the kernel around `line`, both from 0: {name, first, end}; undefined where there is none. */
function kernelAt(text, line) {
  const lines = text.split(/\r?\n/);
  let found;
  for (let k = 0; k < lines.length; k++) {
    if (!/^[A-Za-z]/.test(lines[k])) continue;
    if (k > line) break;
    const head = /^kernel\s+([A-Za-z_]\w*)/.exec(lines[k]);
    found = head ? { name: head[1], first: k, end: lines.length } : undefined;
  }
  if (!found) return undefined;
  let end = found.first + 1;
  while (end < lines.length && !/^[A-Za-z#]/.test(lines[end])) end++;
  while (end > found.first + 1 && lines[end - 1].trim() === "") end--;
  return line < end ? { ...found, end } : undefined;
}

/** The kernel of a text that has one, without what stands before it. */
function kernelText(text) {
  const lines = text.split(/\r?\n/);
  const first = lines.findIndex((line) => line.startsWith("kernel "));
  return lines.slice(Math.max(0, first)).join("\n").trimEnd();
}

/** Those of the sizes that are parameters of the kernel whose head is at line `first`. */
function sizesOf(text, first, sizes) {
  const head = text.split(/\r?\n/).slice(first).join("\n");
  const parameters = head.slice(head.indexOf("("), head.indexOf(")"));
  const own = Object.entries(sizes || {}).filter(([name]) => /^\w+$/.test(name) && new RegExp(`\\b${name}\\b`).test(parameters));
  return Object.fromEntries(own);
}

/** One line for a change: what it gains, and what it is. */
function changeLabel(one) {
  return `${one.gain.toPrecision(3)} x: ${one.change}`;
}

module.exports = { hoverText, kernelAt, kernelText, sizesOf, changeLabel };
