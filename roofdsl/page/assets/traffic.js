// Q of a kernel behind a cache: exactly if there is a form for it, else as an interval.
//
// What moves is {low, high, how, form}: two ends {bytes, loads}, the same object if Q is one number. high is null if
// nothing bounds it from above. loads is null if loads and stores are not distinguished.

/** The plateaus that exist for the remainders of these sizes. */
function plateausFor(forms, sizes) {
  return forms.plateaus.filter((plateau) => plateau.where === undefined || FUNCTIONS[plateau.where](sizes));
}

// A cache is on a plateau from 1.5 times the leading term of its start to 0.75 times that of its end: lower orders do
// not reach so far.
const AFTER = 1.5;
const BEFORE = 0.75;

/** The bytes by a form, and the loads among them if it has these; null if the form has no value at the sizes. */
function movedBy(form, sizes, how) {
  const bytes = valueOf(form, sizes);
  if (bytes === null) return null;
  const one = { bytes, loads: form.loads === undefined ? null : FUNCTIONS[form.loads](sizes) };
  return { low: one, high: one, how, form };
}

/**
 * Q by the plateaus. Well after the start of one and well before its end, Q is that plateau's. Otherwise the cache is
 * in a step: Q is at most that of an earlier plateau (or as if every access missed), and at least that of a later one
 * whose end is not near (or compulsory). A plateau known only by its leading term gives no bound, since lower orders
 * are missing. null if a bound is missing, if no plateaus are known for these sizes, or if the sizes are too small.
 */
function plateauAt(forms, values, cache) {
  const sizes = sizesOf(values);
  if (!FUNCTIONS[forms.large](sizes)) return null;
  const rows = plateausFor(forms, sizes).map((plateau) => ({
    start: toNumber(FUNCTIONS[plateau.start](sizes)),
    end: plateau.end === null ? Infinity : toNumber(FUNCTIONS[plateau.end](sizes)),
    moved: movedBy(plateau.whole, sizes, "plateau"),
  }));
  if (rows.length === 0 || rows.some((row) => row.moved === null)) return null;
  const bytes = Number(cache);
  let k = rows.length - 1;
  while (k > 0 && bytes < AFTER * rows[k].start) k -= 1;
  const next = rows[k + 1];
  const { moved } = rows[k];
  if (bytes < BEFORE * rows[k].end && (!next || bytes < next.start)) return moved;
  const most = rows.slice(0, k + 1).findLast(isWhole)?.moved ?? (forms.every && movedBy(forms.every, sizes, "every"));
  const later = rows.slice(k + 1).find((row) => isWhole(row) && bytes < BEFORE * row.end);
  const least = later?.moved ?? movedBy(forms.compulsory, sizes, "compulsory");
  return most && least && { ...most, how: "step", low: least.low };
}

/** Whether the bytes of a plateau include all lower orders. */
function isWhole(row) {
  return !row.moved.form.leading;
}

/** The bytes that a cache needs to hold every line touched; null if a form is missing. */
function footprint(forms, values) {
  const sizes = sizesOf(values);
  const parts = forms.lines.map((form) => valueOf(form, sizes));
  return parts.length === 0 || parts.includes(null) ? null : sumOf(parts);
}

/** Q by one set of forms for a cache (BigInt; null: unbounded), with rows as the forms assume them; null if unknown. */
function trafficBy(forms, values, cache) {
  const everything = footprint(forms, values);
  if (cache === null || (everything !== null && holds(cache, everything))) {
    return movedBy(forms.compulsory, sizesOf(values), cache === null ? "compulsory" : "fits");
  }
  const grain = BigInt(forms.grain);
  const found = movedBy(forms.exact, sizesOf(values, (cache / grain) * grain), "exact") ?? plateauAt(forms, values, cache);
  return found && inSectors(forms, found);
}

/** Misses of whole lines of which only sectors move: each moves at most the line, and at least one sector. */
function inSectors(forms, found) {
  if (!forms.moved) return found;
  const { bytes } = found.low;
  const low = { bytes: [bytes[0] * BigInt(forms.moved), bytes[1] * BigInt(forms.line)], loads: null };
  return { ...found, how: "sectors", low, high: { ...found.high, loads: null } };
}

/**
 * Q at `values` by the function `by`, for rows as they are in memory. If some rows begin within a line, for which no
 * form holds, Q is assumed to be between that of rows whole lines shorter and that of rows whole lines longer, where the
 * sizes that make them so are known.
 */
function inRows(forms, values, by) {
  const found = by(values);
  if (!found || !forms.rows || !found.form.aligned) return found;
  if (FUNCTIONS[forms.rows.aligned](sizesOf(values))) return { ...found, wholeRows: true };
  const at = (sign) => {
    if (!forms.rows.steps) return null;
    const other = { ...values };
    for (const [name, step] of Object.entries(forms.rows.steps)) other[name] += sign * step;
    return Object.values(other).every((v) => v > 0) ? by(other) : null;
  };
  const [shorter, longer] = [at(-1), at(1)];
  const low = shorter && smaller(shorter.low.bytes, found.low.bytes) ? shorter.low : found.low;
  return {
    ...found,
    how: "rows",
    low: shorter ? low : { bytes: [0n, 1n], loads: null },
    high: longer && found.high && longer.high && larger(longer.high, found.high),
  };
}

function smaller([a, b], [c, d]) {
  return a * d < c * b;
}

function larger(one, other) {
  return smaller(one.bytes, other.bytes) ? other : one;
}

/** Q of a kernel on a machine; null for a cache smaller than the forms allow. */
function trafficAt(entry, values, cache) {
  const [own, elements] = entry.forms;
  if (cache !== null && cache < BigInt(own.least)) return null;
  const found = inRows(own, values, (at) => trafficBy(own, at, cache));
  if (found) return { ...found, forms: own };
  const least = inRows(own, values, (at) => movedBy(own.compulsory, sizesOf(at), "least"));
  const low = least ? least.low : { bytes: [0n, 1n], loads: null };
  return { low, high: atMost(own, elements, values, cache), how: "least", form: (least ?? own).form ?? {}, forms: own };
}

/**
 * An upper bound on what moves if there is no form for the machine's lines. A cache with as many elements as this one
 * has lines misses whenever this one does. And there are no more misses than accesses. null if neither bound is known.
 */
function atMost(own, elements, values, cache) {
  const bounds = [];
  const every = own.every && valueOf(own.every, sizesOf(values));
  if (every) bounds.push(every);
  if (elements && cache !== null) {
    const small = BigInt(elements.smallest);
    const held = (cache / BigInt(own.line)) * small;
    const found = held < BigInt(elements.least) ? null : trafficBy(elements, values, held);
    if (found && found.high && isExact({ ...found, forms: elements })) {
      const [a, b] = found.high.bytes;
      bounds.push([a * BigInt(own.moved ?? own.line), b * small]);
    }
  }
  if (bounds.length === 0) return null;
  return { bytes: bounds.reduce((a, b) => (smaller(b, a) ? b : a)), loads: null };
}

/** The conditions under which a number of bytes holds, in words. */
function statedFor(found) {
  const { aligned, stated } = found.form;
  const isSettled = found.wholeRows || ["rows", "least"].includes(found.how);
  return [aligned && !isSettled && "rows that start on line boundaries", stated].filter(Boolean).join(", ");
}

/** Whether a number of bytes is exactly what the machine moves. */
function isExact(found) {
  return ["exact", "fits", "compulsory"].includes(found.how) && !statedFor(found);
}

/** Whether only an interval is known for the number of bytes. */
function isRange(found) {
  return found.low !== found.high;
}

/** How a number of bytes was found, in a sentence. */
function howText(found) {
  const said = {
    exact: "the closed form of Q(Z)",
    fits: "all data fit, and each moves once",
    compulsory: "unlimited fast memory",
    plateau: "on a plateau of Q(Z), away from its ends, whose positions are leading terms",
    step: "an interval: Z lies in a step of Q(Z) between two plateaus",
    rows: "an interval: rows begin within cache lines, but the closed form assumes aligned rows",
    sectors: "an interval: a missing line costs at least one of its sectors and at most all of them",
    least: "an interval: no closed form is found at this cache size, so Q lies between compulsory traffic and a bound",
  }[found.how];
  const stated = statedFor(found);
  return `${isExact(found) ? "exact: " : ""}${said}${stated ? `; stated for ${stated}` : ""}`;
}
