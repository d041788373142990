// Where the time goes: each term as a bar, and the two bounds that overlap puts on the whole.

function drawBars(state, place) {
  place.replaceChildren(...shownKernels(state).map((k) => barsOf(state, k)));
}

function barsOf(state, k) {
  const kernel = DATA.kernels[k];
  const found = predicted(state, k);
  const values = sizesText(kernel, state.sizes[k]);
  const head = tag("h3", {}, legend(k), `${kernel.name}${values ? `, ${values}` : ""}`);
  if (found.problem) return tag("div", { class: "bars" }, head, tag("p", {}, `${found.problem}.`));
  const rows = found.terms.filter(([name, seconds]) => seconds > 0 || name !== "launch");
  const longest = [...rows].sort((a, b) => b[1] - a[1]);
  const list = tag("dl", {});
  for (const [name, seconds] of rows) {
    list.append(...barOf(termName(name), [[name, seconds]], found.sum, found.bounds.includes(name)));
  }
  list.append(
    ...barOf(["perfect overlap, max"], [longest[0]], found.sum, false),
    ...barOf(["no overlap, sum"], rows, found.sum, false),
  );
  const which = found.bounds.flatMap((name, i) => [i > 0 ? " and " : "", ...termName(name)]);
  const plural = found.bounds.length > 1;
  const second = longest[1][1];
  const lead = !plural && second > 0 ? ` It leads by ${showFactor(longest[0][1] / second)}.` : "";
  const text = ` ${plural ? "bound" : "bounds"} the time${plural ? ", within 10 % of each other" : ""}.${lead}`;
  return tag("div", { class: `bars kernel${k % 6}`, "data-kernel": kernel.name }, head, list, tag("p", {}, ...which, text));
}

/** T with what it is the time of below: parts of a label. */
function termName(name) {
  if (name === "compute") return ["T", tag("sub", {}, "math")];
  if (name === "launch") return ["T", tag("sub", {}, "launch")];
  return ["T", tag("sub", {}, "comms"), ` (${name})`];
}

/** A label, a bar of one or more terms, and their time. */
function barOf(label, terms, whole, bound) {
  const total = terms.reduce((sum, [, seconds]) => sum + seconds, 0);
  const bar = tag("span", { class: "bar", "aria-hidden": "true" });
  for (const [name, seconds] of terms) {
    const part = tag("span", { class: `part ${["compute", "launch"].includes(name) ? name : "memory"}` });
    part.style.width = `${whole > 0 ? (100 * seconds) / whole : 0}%`;
    bar.append(part);
  }
  const value = tag("span", { class: "value", "data-seconds": total }, showTime(total));
  return [tag("dt", {}, ...label), tag("dd", {}, bar, value, bound ? tag("strong", {}, " bound") : "")];
}
