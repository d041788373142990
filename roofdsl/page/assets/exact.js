// Exact integers and fractions: what the engine's expressions are computed in.

/** The greatest integer that is at most a / b, for b of either sign, as Python's `//`. */
function floorDiv(a, b) {
  const q = a / b;
  return a % b !== 0n && (a < 0n) !== (b < 0n) ? q - 1n : q;
}

/** What is left of a after floorDiv, with the sign of b, as Python's `%`. */
function modulo(a, b) {
  return a - b * floorDiv(a, b);
}

function least(...values) {
  return values.reduce((a, b) => (b < a ? b : a));
}

function greatest(...values) {
  return values.reduce((a, b) => (b > a ? b : a));
}

/**
 * The greatest integer from low to high at which `of`, which rises, is at most 0, else low - 1; of one that falls the
 * least, else high + 1.
 */
function root(of, low, high, rises) {
  const sign = rises ? 1n : -1n;
  const [first, last] = rises ? [low, high] : [-high, -low];
  let below = first - 1n;
  let above = greatest(last, below) + 1n;
  while (above - below > 1n) {
    const middle = floorDiv(above + below, 2n);
    if (of(sign * middle) <= 0n) below = middle;
    else above = middle;
  }
  return sign * below;
}

/** A fraction [numerator, denominator] as a number: one rounding where it is whole, else at most three. */
function toNumber([numerator, denominator]) {
  if (denominator === 1n) return Number(numerator);
  if (numerator % denominator === 0n) return Number(numerator / denominator);
  return Number(numerator) / Number(denominator);
}

function sumOf(fractions) {
  return fractions.reduce(([a, b], [c, d]) => (b === d ? [a + c, b] : [a * d + c * b, b * d]), [0n, 1n]);
}

/** Whether a whole number of bytes is at least a fraction. */
function holds(bytes, [numerator, denominator]) {
  return bytes * denominator >= numerator;
}

/** A number that is not negative as the nearest BigInt; also from 1e21 on, where its text has an exponent. */
function whole(value) {
  return BigInt(Math.max(0, Math.round(value)));
}
