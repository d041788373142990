// The values of the engine's expressions at given sizes, and the times that follow on a machine.
//
// A form is {f, needs, for, aligned, leading, stated, loads}. f: the number of its function. needs, for: the condition
// on sizes under which it holds, as the number of a function, and in words. aligned: whether it assumes that rows start
// on line boundaries. leading: whether it has only leading terms. stated: its further assumptions, in words. loads: the
// number of the function for what is loaded. Sizes are BigInts by parameter, with Z for the cache.

/** An object without a prototype, so that no parameter's name has another meaning. */
function sizesOf(values, cache = null) {
  const sizes = Object.create(null);
  for (const name of Object.keys(values)) sizes[name] = BigInt(values[name]);
  if (cache !== null) sizes.Z = cache;
  return sizes;
}

/** A form's value as a fraction; null without a form, if it does not hold at these sizes, or if its sum has too many terms. */
function valueOf(form, sizes) {
  if (!form || (form.needs !== undefined && !FUNCTIONS[form.needs](sizes))) return null;
  return FUNCTIONS[form.f](sizes);
}

/** Whether the kernel allows the sizes. */
function allowed(kernel, values) {
  return FUNCTIONS[kernel.assume](sizesOf(values));
}

// ---- time ----

/**
 * The counts that the expression of the time asks for, by name: numbers of operations, and what crosses the memory's
 * boundary at an `end` of the traffic's interval. If loads and stores are not distinguished there, the larger of the
 * two is at least half of the bytes (taken if `least`), and at most all of them.
 */
function countsAt(operations, memory, end, least) {
  const bytes = end === null ? Infinity : toNumber(end.bytes);
  const loads = end && end.loads ? toNumber(end.loads) : bytes / (least ? 2 : 1);
  const moved = {
    [`${memory.name} bytes`]: bytes,
    [`${memory.name} loads`]: loads,
    [`${memory.name} stores`]: loads < bytes ? bytes - loads : 0,
    launches: 1,
  };
  return (name) => moved[name] ?? operations(name);
}

/** The units that a kernel runs on if `unit` is selected; "" selects those that the kernel states. */
function unitOf(kernel, unit) {
  return kernel.contraction ? unit || kernel.unit : "";
}

function ratesOf(entry, unit) {
  const found = entry.rates[unit];
  return found.same === undefined ? found : entry.rates[found.same];
}

/**
 * The prediction of one launch with memory as the only level: {work, bytes, intensity, terms, time, sum, rate, bounds,
 * ...}. `low` and `high` are the results (`endAt`) for the least and the most bytes that may move; the other numbers are
 * those of `high`. If it is `decided` what bounds the time, `bounds` says it; otherwise `candidates` has the possible
 * answers. If there is no prediction, {problem} says why.
 */
function predictionAt(kernel, type, machine, unit, values, cache) {
  const variant = kernel.variants[type] ?? kernel.variants[kernel.own];
  const entry = variant.machines[machine.name];
  if (!allowed(kernel, values)) return { problem: `needs ${kernel.assumed.join(", ")}` };
  const rates = ratesOf(entry, unit);
  if (rates.missing) return { problem: rates.missing };
  const sizes = sizesOf(values);
  const work = valueOf(variant.work, sizes);
  const moved = trafficAt(entry, values, cache);
  if (work === null) return { problem: `W is stated for ${variant.work.for}` };
  if (moved === null) return { problem: "no closed form of its traffic for these sizes" };
  const known = Object.create(null);
  const operations = (name) => (known[name] ??= toNumber(valueOf(variant.counts[name], sizes)));
  const at = (end, least) => endAt(toNumber(work), end && toNumber(end.bytes),
    FUNCTIONS[rates.seconds](countsAt(operations, machine.memory, end, least)));
  const low = at(moved.low, true);
  const high = at(moved.high, false);
  const isOne = low.memory === high.memory && low.bytes === high.bytes;
  const candidates = [...new Set([...low.bounds, ...high.bounds])];
  const decided = candidates.length === low.bounds.length && candidates.length === high.bounds.length;
  return {
    variant, entry, rates, moved, work: toNumber(work), compute: low.terms[0][1], launch: low.terms[2][1],
    ...high, low, high, isOne, candidates, decided, bounds: decided ? high.bounds : [],
  };
}

/**
 * The expected time, which has no closed form: {seconds, bound, model, causes} from `predict` if the page has it for these
 * sizes, this type and unit, and this cache; {missing} if there is none; otherwise {known}, the sizes for which the
 * page has it.
 */
function expectedAt(kernel, type, machine, unit, values, cache) {
  const found = kernel.expected[machine.name];
  if (found.missing) return found;
  const own = machine.cache === null ? null : BigInt(machine.cache.size);
  const isAsked = type === kernel.own && unitOf(kernel, unit) === unitOf(kernel, "") && cache === own;
  const here = (row) => Object.entries(row.values).every(([name, value]) => values[name] === value);
  return (isAsked && found.times.find(here)) || { known: found.times.filter((row) => !row.missing).map((row) => row.values) };
}

/** The time: the largest of its terms. */
function timeOf(terms) {
  return Math.max(...terms.map(([, seconds]) => seconds));
}

/** The same terms with another time of the memory, which is the second term. */
function withMemory([compute, [name], launch], seconds) {
  return [compute, [name, seconds], launch];
}

/** One end of a prediction: its results if `bytes` move (null: no bound is known), with the times of its terms. */
function endAt(work, bytes, terms) {
  const time = timeOf(terms);
  const bounds = terms
    .filter(([, seconds]) => seconds > 0 && seconds >= NEAR * time)
    .sort((a, b) => b[1] - a[1])
    .map(([name]) => name);
  return {
    bytes: bytes ?? Infinity,
    intensity: work > 0 && bytes !== 0 ? work / (bytes ?? Infinity) : null,
    terms, memory: terms[1][1], time, bounds,
    longest: terms.reduce((best, term) => (term[1] > best[1] ? term : best))[0],
    sum: terms.reduce((total, [, seconds]) => total + seconds, 0),
    rate: time > 0 ? work / time : 0,
    bytesPerSecond: time > 0 && bytes !== null ? bytes / time : 0,
  };
}

/** The name of the longest term of the time; null if that is undecided. */
function longestOf(found) {
  return found.low.longest === found.high.longest ? found.high.longest : null;
}
