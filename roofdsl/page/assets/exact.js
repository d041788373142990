// Exact integers and fractions, in which the engine's expressions are computed.

/** The greatest integer that is at most a / b, for b of either sign, like Python's `//`. */
function floorDiv(a, b) {
  const q = a / b;
  return a % b !== 0n && (a < 0n) !== (b < 0n) ? q - 1n : q;
}

/** The remainder of floorDiv, with the sign of b, like Python's `%`. */
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
 * If `of` rises: the greatest integer from low to high at which it is at most 0, or low - 1 if there is none. If it
 * falls: the least such integer, or high + 1.
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

/** A fraction [numerator, denominator] as a number: rounded once if it is whole, else at most three times. */
function toNumber([numerator, denominator]) {
  if (denominator === 1n) return Number(numerator);
  if (numerator % denominator === 0n) return Number(numerator / denominator);
  return Number(numerator) / Number(denominator);
}

function sumOf(fractions) {
  return fractions.reduce(([a, b], [c, d]) => (b === d ? [a + c, b] : [a * d + c * b, b * d]), [0n, 1n]);
}

/** Whether a number of bytes (a BigInt) is at least a fraction. */
function holds(bytes, [numerator, denominator]) {
  return bytes * denominator >= numerator;
}

/** The BigInt nearest to a number, at least 0; also from 1e21 on, where the number's text has an exponent. */
function whole(value) {
  return BigInt(Math.max(0, Math.round(value)));
}
