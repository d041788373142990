// What the engine's expressions say at given sizes, and the times that follow on a machine.
//
// A form is {f, needs, for, words, loads}: the number of its function, that of the condition under which it is stated and
// this in words, what no sizes decide, and the function of what is loaded. Sizes are BigInts by parameter, with Z for the
// cache.

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

// ---- traffic ----

const AFTER = 1.5; // of the leading term of a plateau's start, and of its end: beyond lies no lower order of it
const BEFORE = 0.75;

/**
 * Q where plateaus tell: on one, well after its start and well before its end; else in a step, at most what the plateau
 * before it has and at least what the next one has. null where none is stated.
 */
function plateauAt(forms, values, cache) {
  const sizes = sizesOf(values);
  const rows = forms.plateaus.map((plateau) => ({
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
  const least = next ? next.moved : movedBy(forms.compulsory, sizes, "compulsory");
  return least && { ...moved, how: "step", least: toNumber(least.bytes) };
}

/** Bytes that a cache must have to hold every line touched; null where that has no form. */
function footprint(forms, values) {
  const sizes = sizesOf(values);
  const parts = forms.lines.map((form) => valueOf(form, sizes));
  return parts.length === 0 || parts.includes(null) ? null : sumOf(parts);
}

/** Bytes by a form, and what of them is loaded where it tells; null where it is not stated for the sizes. */
function movedBy(form, sizes, how) {
  const bytes = valueOf(form, sizes);
  if (bytes === null) return null;
  return { bytes, loads: form.loads === undefined ? null : FUNCTIONS[form.loads](sizes), how, form };
}

/** Q by one set of forms at a cache (BigInt, null without bound); null where they do not say. */
function trafficBy(forms, values, cache) {
  const everything = footprint(forms, values);
  if (cache === null || (everything !== null && holds(cache, everything))) {
    return movedBy(forms.compulsory, sizesOf(values), cache === null ? "compulsory" : "fits");
  }
  const grain = BigInt(forms.grain);
  const exact = movedBy(forms.exact, sizesOf(values, (cache / grain) * grain), "exact");
  if (exact) return exact;
  return plateauAt(forms, values, cache);
}

/** Q of a kernel on a machine: in the machine's lines where they have a form, else in single elements. */
function trafficAt(entry, values, cache) {
  const least = BigInt(entry.forms[0].least);
  if (cache !== null && cache < least) return null;
  for (const forms of entry.forms) {
    const found = trafficBy(forms, values, cache);
    if (found) return { ...found, forms, elements: forms !== entry.forms[0] };
  }
  for (const forms of entry.forms) {
    const found = movedBy(forms.compulsory, sizesOf(values), "least");
    if (found) return { ...found, forms, elements: forms !== entry.forms[0] };
  }
  return null;
}

/** Whether a number of bytes is what the machine moves, to the last byte. */
function isExact(found) {
  return ["exact", "fits", "compulsory"].includes(found.how) && !found.elements && !found.form.words;
}

/** Whether a number of bytes is a bound on what is moved and no more. */
function isBound(found) {
  return found.how === "least" || found.how === "step";
}

/** How a number of bytes was come by, in a sentence. */
function howText(found) {
  const said = {
    exact: "the closed form of Q(Z)",
    fits: "all data fit, and each moves once",
    compulsory: "fast memory without bound",
    plateau: "on a plateau of Q(Z), away from steps whose places are leading terms",
    step: `at most this, in a step of Q(Z) between plateaus; at least ${showBytes(found.least ?? 0)}`,
    least: "at least this much: no closed form is found at this cache, and compulsory traffic is shown",
  }[found.how];
  const lines = found.elements ? "; counted in single elements, for want of a form in the machine's lines" : "";
  const stated = (found.form.words ?? "").replace("rows aligned", "rows that start on line boundaries");
  const words = stated ? `; stated for ${stated}` : "";
  return `${isExact(found) ? "exact: " : ""}${said}${lines}${words}`;
}

// ---- time ----

/** T_comp in seconds: the busiest pipe. */
function computeSeconds(variant, rates, sizes) {
  const pipes = rates.pipes.map((pipe) =>
    pipe.reduce((sum, [key, seconds]) => sum + toNumber(valueOf(variant.counts[key], sizes)) * seconds, 0),
  );
  return Math.max(0, ...pipes);
}

/** T of the memory in seconds: on a duplex one, loads and stores cross at the same time where they are told apart. */
function memorySeconds(memory, moved) {
  const bytes = toNumber(moved.bytes);
  if (!memory.duplex || !moved.loads) return bytes / memory.bandwidth;
  const loads = toNumber(moved.loads);
  return Math.max(loads, bytes - loads) / memory.bandwidth;
}

function ratesOf(entry, unit) {
  const found = entry.rates[unit];
  return found.same === undefined ? found : entry.rates[found.same];
}

const NEAR = 0.9; // terms within 10 % of the largest are named with it

/**
 * The prediction of one launch, memory the only level: {work, bytes, intensity, terms, time, sum, rate, bounds, ...}.
 * {problem} in words where there is none.
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
  const bytes = toNumber(moved.bytes);
  const terms = [
    ["compute", computeSeconds(variant, rates, sizes)],
    [machine.memory.name, memorySeconds(machine.memory, moved)],
    ["launch", machine.launch],
  ];
  const time = Math.max(...terms.map(([, seconds]) => seconds));
  const sum = terms.reduce((total, [, seconds]) => total + seconds, 0);
  const operations = toNumber(work);
  const bounds = terms
    .filter(([, seconds]) => seconds > 0 && seconds >= NEAR * time)
    .sort((a, b) => b[1] - a[1])
    .map(([name]) => name);
  return {
    variant, entry, rates, moved, terms, time, sum, bounds,
    work: operations,
    bytes,
    intensity: operations > 0 && bytes > 0 ? operations / bytes : null,
    rate: time > 0 ? operations / time : 0,
    bytesPerSecond: time > 0 ? bytes / time : 0,
    compute: terms[0][1],
    memory: terms[1][1],
    launch: terms[2][1],
  };
}

// ---- where a kernel crosses the ridge ----

/** The next size that the kernel allows: `values` with one parameter set, and what depends on it made a multiple. */
function withSize(kernel, values, name, size) {
  const out = { ...values, [name]: Math.max(1, Math.round(size)) };
  for (let pass = 0; pass < 2; pass += 1) {
    for (const { of, by } of kernel.multiples) {
      const step = typeof by === "number" ? by : out[by];
      out[of] = Math.max(1, Math.round(out[of] / step)) * step;
    }
  }
  return out;
}

/** What the sizes of a parameter are multiples of. */
function stepOf(kernel, values, name) {
  const steps = kernel.multiples.filter((m) => m.of === name);
  return steps.reduce((step, { by }) => Math.max(step, typeof by === "number" ? by : values[by]), 1);
}

/**
 * Sizes of a parameter from which on arithmetic takes at least as long as memory, or no longer does:
 * {found: [{size, compute}], from small to large, unknown: whether Q is only bounded at some size}. Between a few
 * hundred sizes each change is looked for by halving.
 */
function crossings(kernel, name, most, values, predict) {
  const step = stepOf(kernel, values, name);
  const computes = (k) => {
    const found = predict({ ...values, [name]: k * step });
    return found.problem || found.work === 0 || isBound(found.moved) ? null : found.compute >= found.memory;
  };
  const stops = stopsUpTo(Math.max(1, Math.floor(most / step)), 4);
  const out = [];
  let unknown = false;
  let [last, before] = [stops[0], computes(stops[0])];
  for (const k of stops.slice(1)) {
    const now = computes(k);
    if (now !== null && before !== null && now !== before) {
      let [low, high] = [last, k];
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2);
        if (computes(middle) === now) high = middle;
        else low = middle;
      }
      out.push({ size: high * step, compute: now });
    }
    if (now === null) unknown = true;
    else [last, before] = [k, now];
  }
  return { found: out, unknown };
}

/** Whole numbers from 1 up to `most`, `each` in an octave. */
function stopsUpTo(most, each) {
  const stops = [];
  for (let k = 0; ; k += 1) {
    const stop = Math.round(2 ** (k / each));
    if (stop > most) break;
    if (stops.length === 0 || stop > stops[stops.length - 1]) stops.push(stop);
  }
  return stops;
}
