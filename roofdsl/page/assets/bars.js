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
  const rows = found.low.terms
    .map(([name, low], i) => ({ name, low, high: found.high.terms[i][1] }))
    .filter(({ name, high }) => high > 0 || name !== "launch");
  const whole = Number.isFinite(found.high.sum) ? found.high.sum : 2 * found.low.sum;
  const list = tag("dl", {});
  for (const row of rows) list.append(...barOf(termName(row.name), [row], row, whole, found.bounds.includes(row.name)));
  const longest = (end) => rows.find(({ name }) => name === end.longest) ?? rows[0];
  const overlap = { name: longest(found.low).name, low: found.low.time, high: found.high.time };
  list.append(
    ...barOf(["perfect overlap, max"], [overlap], overlap, whole, false),
    ...barOf(["no overlap, sum"], rows, { low: found.low.sum, high: found.high.sum }, whole, false),
  );
  return tag("div", { class: `bars kernel${k % 6}`, "data-kernel": kernel.name }, head, list,
    tag("p", {}, ...boundWords(found, rows)), expectedWords(state, k));
}

/** The expected time that `predict` finds; for sizes at which the page has none, how to get it. */
function expectedWords(state, k) {
  const kernel = DATA.kernels[k];
  const machine = machineOf(state);
  const found = expectedAt(kernel, typeOf(state, k), machine, state.unit, state.sizes[k], cacheOf(state));
  if (found.missing) return tag("p", { class: "expected" }, `No expected time: ${found.missing}.`);
  if (found.seconds !== undefined) {
    const [cause] = found.causes;
    const share = cause && cause.share > 0 ? ` The largest cause: ${cause.cause} (+${showTime(cause.share, 3)}).` : "";
    return tag("p", { class: "expected", "data-seconds": String(found.seconds) }, tag("strong", {}, `Expected: ${showTime(found.seconds)}`),
      ", as ", tag("code", {}, "roofdsl predict"), ` finds it (${found.model}). The bound over all levels is ${showTime(found.bound)}.${share}`);
  }
  const settings = kernel.parameters.map(({ name }) => ` --set ${name}=${state.sizes[k][name]}`).join("");
  const known = found.known.map((values) => sizesText(kernel, values)).filter((text) => text).join("; ");
  return tag("p", { class: "expected" }, `The expected time has no closed form${known ? `; the page has it for ${known}` : ""}. Run `,
    tag("code", {}, `roofdsl predict FILE:${kernel.name} --machine ${machine.name}${settings}`), " for these sizes.");
}

/** What bounds the time, and how far ahead it is of the next term; or that this is undecided. */
function boundWords(found, rows) {
  const named = (names, last) => names.flatMap((name, i) => [i > 0 ? last : "", ...termName(name)]);
  if (found.decided && found.bounds.length === 0) return ["Nothing takes time."];
  if (!found.decided) {
    const span = showSpan(found.low.bytes, found.high.bytes, showBytes);
    return ["Undecided: ", ...named(found.candidates, " or "), ` bounds the time, since Q is only known to be ${span}.`];
  }
  const plural = found.bounds.length > 1;
  const ratio = (end) => {
    const [first, second] = rows.map(({ name }) => end.terms.find(([n]) => n === name)[1]).sort((a, b) => b - a);
    return second > 0 ? first / second : Infinity;
  };
  const [least, most] = [ratio(found.low), ratio(found.high)].sort((a, b) => a - b);
  const lead = !plural && Number.isFinite(most) ? ` It leads by ${showSpan(least, most, showFactor)}.` : "";
  const text = ` ${plural ? "bound" : "bounds"} the time${plural ? ", within 10 % of each other" : ""}.${lead}`;
  return [...named(found.bounds, " and "), text];
}

/** T with the name of the term as a subscript: parts of a label. */
function termName(name) {
  if (name === "compute") return ["T", tag("sub", {}, "math")];
  if (name === "launch") return ["T", tag("sub", {}, "launch")];
  return ["T", tag("sub", {}, "comms"), ` (${name})`];
}

/** A label, a bar of one or more terms with their least and greatest possible lengths, and their time. */
function barOf(label, terms, time, whole, bound) {
  const bar = tag("span", { class: "bar", "aria-hidden": "true" });
  for (const { name, low, high } of terms) {
    const kind = ["compute", "launch"].includes(name) ? name : "memory";
    for (const [seconds, more] of [[low, ""], [Math.min(high, whole) - low, " maybe"]]) {
      if (more && seconds <= 0) continue;
      const part = tag("span", { class: `part ${kind}${more}` });
      part.style.width = `${whole > 0 ? (100 * seconds) / whole : 0}%`;
      bar.append(part);
    }
  }
  const value = tag("span", { class: "value", "data-seconds": time.low }, showSpan(time.low, time.high, showTime));
  return [tag("dt", {}, ...label), tag("dd", {}, bar, value, bound ? tag("strong", {}, " bound") : "")];
}
