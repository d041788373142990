// The sizes from which another term of the time is the longest.

/** `values` with one parameter set. Parameters that must be multiples of a number or of another one are rounded. */
function withSize(kernel, values, name, size) {
  const out = { ...values, [name]: Math.max(1, Math.round(size)) };
  for (let pass = 0; pass < 2; pass += 1) {
    for (const { of } of kernel.multiples) {
      const step = stepOf(kernel, out, of);
      out[of] = Math.max(1, Math.round(out[of] / step)) * step;
    }
  }
  return out;
}

/** The number of which a parameter must be a multiple: 96 if it must be one of 32 and of 48. */
function stepOf(kernel, values, name) {
  const divisor = (a, b) => (b === 0 ? a : divisor(b, a % b));
  const steps = kernel.multiples.filter((m) => m.of === name).map(({ by }) => (typeof by === "number" ? by : values[by]));
  return steps.reduce((all, step) => (all / divisor(all, step)) * step, 1);
}

/**
 * The longest term over the sizes of a parameter, from small to large: [{from, after, longest}]. The longest term is
 * `longest` at the size `from`, and still the previous one at the size `after` (null in the first entry). If sizes lie
 * between the two, it changes somewhere there. Only sizes at which it is decided are compared: four per octave and,
 * where it differs between two of them, others found by bisection.
 */
function crossings(kernel, name, most, values, predict) {
  const step = stepOf(kernel, values, name);
  const longestAt = (k) => {
    const found = predict({ ...values, [name]: k * step });
    return found.problem ? null : longestOf(found);
  };
  const out = [];
  let last = null;
  for (const k of stopsUpTo(Math.max(1, Math.floor(most / step)), 4)) {
    const longest = longestAt(k);
    if (longest === null) continue;
    if (last === null) out.push({ from: k, after: null, longest });
    else if (longest !== last.longest) out.push(...changes(last, { k, longest }, longestAt));
    last = { k, longest };
  }
  return out.map(({ from, after, longest }) => ({ from: from * step, after: after === null ? null : after * step, longest }));
}

/** The changes between two sizes {k, longest} whose longest terms differ. */
function changes(first, end, longestAt) {
  const out = [];
  let start = first;
  while (start.longest !== end.longest) {
    let [low, high] = [start.k, end.k];
    while (high - low > 1) { // finds the first size whose longest term is another one than at `start`, or undecided
      const middle = Math.floor((low + high) / 2);
      if (longestAt(middle) === start.longest) low = middle;
      else high = middle;
    }
    let next = { k: high, longest: longestAt(high) };
    while (next.longest === null || next.longest === start.longest) { // undecided sizes may follow
      next = { k: next.k + 1, longest: next.k + 1 >= end.k ? end.longest : longestAt(next.k + 1) };
      if (next.k - high > FEW) next = decidedBetween(next.k, end, start.longest, longestAt);
    }
    out.push({ from: next.k, after: low, longest: next.longest });
    start = next;
  }
  return out;
}

const FEW = 40; // this many consecutive sizes are examined one by one

/** The first size, found by bisection, at which the longest term is decided and is not `before`. */
function decidedBetween(low, end, before, longestAt) {
  let high = end;
  let below = low;
  while (high.k - below > 1) {
    const middle = Math.floor((below + high.k) / 2);
    const longest = longestAt(middle);
    if (longest === null || longest === before) below = middle;
    else high = { k: middle, longest };
  }
  return high;
}

/** Whole numbers from 1 up to `most`, `each` per octave. */
function stopsUpTo(most, each) {
  const stops = [];
  for (let k = 0; ; k += 1) {
    const stop = Math.round(2 ** (k / each));
    if (stop > most) break;
    if (stops.length === 0 || stop > stops[stops.length - 1]) stops.push(stop);
  }
  return stops;
}
