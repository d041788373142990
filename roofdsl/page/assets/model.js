// What the engine's expressions say at given sizes, and the times that follow on a machine.
//
// A form is {f, needs, for, aligned, leading, stated, loads}: the number of its function, that of the condition under which
// it is stated and this in words, whether it takes rows to start on lines, whether it has leading terms only, all that no
// sizes decide in words, and the function of what is loaded. Sizes are BigInts by parameter, with Z for the cache.

/** An object without a prototype, so that a parameter of any name is only a name. */
function sizesOf(values, cache = null) {
  const sizes = Object.create(null);
  for (const name of Object.keys(values)) sizes[name] = BigInt(values[name]);
  if (cache !== null) sizes.Z = cache;
  return sizes;
}

/** A form's value as a fraction; null where there is no form, or it is not stated for these sizes. */
function valueOf(form, sizes) {
  if (!form || (form.needs !== undefined && !FUNCTIONS[form.needs](sizes))) return null;
  return FUNCTIONS[form.f](sizes);
}

/** Whether the kernel allows the sizes. */
function allowed(kernel, values) {
  return FUNCTIONS[kernel.assume](sizesOf(values));
}

// ---- time ----

/** T_comp in seconds: the busiest pipe. */
function computeSeconds(variant, rates, sizes) {
  const pipes = rates.pipes.map((pipe) =>
    pipe.reduce((sum, [key, seconds]) => sum + toNumber(valueOf(variant.counts[key], sizes)) * seconds, 0),
  );
  return Math.max(0, ...pipes);
}

/**
 * T of the memory in seconds, at each end of what moves: on a duplex one, loads and stores cross at the same time. Where
 * they are not told apart there, the larger direction has at least half of the bytes.
 */
function memorySeconds(memory, end, least, convention) {
  if (end === null) return Infinity;
  const bytes = toNumber(end.bytes);
  if (!memory.duplex || convention === "once") return bytes / memory.bandwidth;
  if (!end.loads) return bytes / (least ? 2 : 1) / memory.bandwidth;
  const loads = toNumber(end.loads);
  return Math.max(loads, bytes - loads) / memory.bandwidth;
}

function ratesOf(entry, unit) {
  const found = entry.rates[unit];
  return found.same === undefined ? found : entry.rates[found.same];
}

const NEAR = 0.9; // terms within 10 % of the largest are named with it

/**
 * The prediction of one launch, memory the only level: {work, bytes, intensity, terms, time, sum, rate, bounds, ...}, the
 * last nine once more in `low` and `high` for the least and the most that can move. `bounds` is what bounds the time
 * where that is `decided`, else `candidates` are those it may be. {problem} in words where there is none.
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
  const operations = toNumber(work);
  const compute = computeSeconds(variant, rates, sizes);
  const at = (end, least) => endAt(operations, machine, compute, end && toNumber(end.bytes),
    memorySeconds(machine.memory, end, least, entry.convention));
  const low = at(moved.low, true);
  const high = at(moved.high, false);
  const isOne = low.memory === high.memory && low.bytes === high.bytes;
  const candidates = [...new Set([...low.bounds, ...high.bounds])];
  const decided = candidates.length === low.bounds.length && candidates.length === high.bounds.length;
  return {
    variant, entry, rates, moved, work: operations, compute, launch: machine.launch,
    ...high, low, high, isOne, candidates, decided, bounds: decided ? high.bounds : [],
  };
}

/** One end of a prediction: where so many bytes move in so many seconds. */
function endAt(work, machine, compute, bytes, memory) {
  const terms = [["compute", compute], [machine.memory.name, memory], ["launch", machine.launch]];
  const time = Math.max(...terms.map(([, seconds]) => seconds));
  const bounds = terms
    .filter(([, seconds]) => seconds > 0 && seconds >= NEAR * time)
    .sort((a, b) => b[1] - a[1])
    .map(([name]) => name);
  return {
    bytes: bytes ?? Infinity,
    intensity: work > 0 && bytes !== 0 ? work / (bytes ?? Infinity) : null,
    terms, memory, time, bounds,
    longest: terms.reduce((best, term) => (term[1] > best[1] ? term : best))[0],
    sum: terms.reduce((total, [, seconds]) => total + seconds, 0),
    rate: time > 0 ? work / time : 0,
    bytesPerSecond: time > 0 && bytes !== null ? bytes / time : 0,
  };
}

/** The longest term of the time, by its name; null where that is undecided. */
function longestOf(found) {
  return found.low.longest === found.high.longest ? found.high.longest : null;
}
