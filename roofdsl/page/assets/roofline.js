// The roofline: axes, slope, roof, ridge and kernels, added step by step.

const ANATOMY = [
  ["Two axes", "Across: how many operations a program does for each byte it moves, its intensity. Upwards: how many it could finish in a second. Both grow tenfold from line to line."],
  ["The slope", "Memory hands over a fixed number of bytes a second. A program that does I operations with each of them gets no further than I times that, a line through the whole plane."],
  ["The roof", "The arithmetic units finish only a fixed number of operations a second, however few bytes they take. That caps everything from above."],
  ["The ridge", "Slope and roof meet at one intensity, the machine's balance. Left of it the arithmetic waits for bytes; right of it the bytes wait for arithmetic."],
  ["The kernels", "Each kernel stands at its own intensity, as high as roof, slope and launches allow. Move a slider, and the kernel moves."],
];

/** The lines to draw: the roofs for the types of all kernels shown, and the ceilings only of the kernel in focus. */
function linesOf(state) {
  const machine = machineOf(state);
  const roofs = new Map();
  let slopes = [];
  const kernels = [state.focus, ...shownKernels(state).filter((k) => k !== state.focus)];
  for (const k of kernels) {
    const { types } = DATA.kernels[k].variants[typeOf(state, k)];
    for (const type of types) {
      const found = machine.roofs[type][unitOf(DATA.kernels[k], state.unit)];
      if (slopes.length === 0) slopes = found.slopes;
      for (const roof of found.roofs) {
        const known = roofs.get(roof.label);
        if ((k === state.focus || !roof.ceiling) && !known) roofs.set(roof.label, roof);
      }
    }
  }
  return { slopes, roofs: [...roofs.values()].sort((a, b) => b.rate - a.rate) };
}

/** The limits of the plane: powers of ten in x, and the same while a slider moves, unless a point leaves them. */
function planeOf(lines, beta, points) {
  const ridges = lines.roofs.map((roof) => roof.rate / beta);
  const tops = lines.roofs.map((roof) => roof.rate);
  const xs = points.flatMap((p) => p.ends.map((end) => end.intensity)).filter((x) => x && Number.isFinite(x));
  const left = Math.min(0.01, ...ridges.map((r) => r / 300), ...xs.map((x) => x / 2));
  const right = Math.max(1000, ...ridges.map((r) => r * 30), ...xs.map((x) => x * 2));
  const x = [10 ** Math.floor(Math.log10(left)), 10 ** Math.ceil(Math.log10(right))];
  const ys = points.filter((p) => p.intensity !== null)
    .flatMap((p) => [p.rate, ...p.ends.map((end) => end.rate)]).filter((rate) => rate > 0);
  const bottom = Math.min(beta * x[0], ...ys.map((y) => y / 3));
  return { x, y: [bottom, Math.max(...tops, beta * x[0] * 10, ...ys) * 4] };
}

function measuredPoints(state) {
  const out = [];
  for (const row of DATA.measured) {
    const k = DATA.kernels.findIndex((kernel) => kernel.name === row.kernel);
    if (!state.shown[k] || typeOf(state, k) !== DATA.kernels[k].own) continue;
    const found = predicted(state, k, row.values);
    if (found.problem) continue;
    const amount = found.work || found.bytes;
    const rates = [row.seconds, row.high, row.low].map((seconds) => amount / seconds);
    const at = Object.entries(row.values).map(([name, value]) => `${name} = ${value}`).join(", ");
    const ends = endsOf(found);
    out.push({ k, row, at, ends, intensity: middleOf(ends).intensity, rate: rates[0], low: rates[1], high: rates[2], found });
  }
  return out;
}

function drawRoofline(state, place) {
  const machine = machineOf(state);
  const beta = machine.memory.bandwidth;
  const lines = linesOf(state);
  const points = shownKernels(state)
    .map((k) => ({ k, found: predicted(state, k) }))
    .filter(({ found }) => !found.problem)
    .map(({ k, found }) => ({ k, found, ends: endsOf(found), ...middleOf(endsOf(found)) }));
  const measured = measuredPoints(state);
  const limits = planeOf(lines, beta, [...points, ...measured]);
  const size = frameOf(place, 0.58, 300);
  const x = logScale(limits.x, [size.left, size.right]);
  const y = logScale(limits.y, [size.bottom, size.top]);
  const labels = new Labels(size);
  const unit = points.length > 0 && points.every((p) => p.found.variant.operation === "OP") ? "OP" : "FLOP";
  const parts = [
    axes(size, { x, y }, {
      x: powers(x, 44).map((e) => [10 ** e, showPower(e)]),
      y: powers(y, 26).map((e) => [10 ** e, showPower(e)]),
    }, { x: `intensity (${unit}/B)`, y: `attainable performance (${unit}/s)` }),
  ];
  const main = lines.roofs.find((roof) => !roof.ceiling) ?? lines.roofs[0];
  const ridge = main ? main.rate / beta : null;
  if (state.step >= 5) {
    for (const p of [...points, ...measured]) labels.block(xOf(p, x) - 8, yOf(p, x, y) - 8, 16, 16);
  }
  if (state.step >= 4 && main) parts.unshift(...regions(size, x, y, ridge, beta, main.rate));
  if (state.step >= 2) parts.push(...slopesOf(lines, size, x, y, main, labels));
  if (state.step >= 3) parts.push(...roofsIn(lines, size, x, y, beta, labels));
  if (state.step >= 4 && main) parts.push(...ridgeOf(size, x, y, ridge, main.rate, labels));
  if (state.step >= 5) {
    parts.push(trackOf(state, x, y));
    parts.push(...measured.map((p) => measuredMark(p, x, y, labels)));
    const last = [...points].sort((a, b) => Number(a.k === state.focus) - Number(b.k === state.focus));
    last.forEach((p, i) => {
      p.radius = 6 + 4 * last.slice(i + 1).filter((q) => covers(q, p, x, y)).length; // larger if others cover it
    });
    parts.push(...last.map((p) => pointMark(state, p, x, y, labels, main, beta)));
  }
  show(place, size, `Roofline of ${machine.title}`, describe(state), ...parts);
}

/** The ends of a prediction [{intensity, rate}], lower intensity first; a single one if the traffic is one number. */
function endsOf(found) {
  const ends = found.isOne ? [found.high] : [found.high, found.low];
  return ends.map((end) => ({
    intensity: found.work > 0 && end.intensity === null && !found.isOne ? Infinity : end.intensity, rate: end.rate,
  }));
}

/**
 * The place of an interval's label: halfway on both scales. There, the first end counts as at least 1/10000 of the last
 * one; if the last end is infinite, the label is at the first.
 */
function middleOf(ends) {
  const [first, last] = [ends[0], ends[ends.length - 1]];
  if (first === last || first.intensity === null) return last;
  const between = (a, b) => (Number.isFinite(b) ? Math.sqrt(Math.max(a, b / 1e4) * b) : a);
  return { intensity: between(first.intensity, last.intensity), rate: between(first.rate, last.rate) };
}

function xOf(point, x) {
  return point.intensity === null ? x(x.low) : x.clamped(point.intensity);
}

/** A kernel without operations is on the left edge, where the line of its bandwidth begins. */
function yOf(point, x, y) {
  return y.clamped(point.intensity === null ? point.found.bytesPerSecond * x.low : point.rate);
}

/** Whether there is room for more than names: not on a phone. */
function hasRoom(x) {
  return x(x.high) - x(x.low) > 400;
}

function covers(a, b, x, y) {
  return Math.hypot(xOf(a, x) - xOf(b, x), yOf(a, x, y) - yOf(b, x, y)) < 8;
}

function regions(size, x, y, ridge, beta, peak) {
  const [left, middle, right] = [size.left, x.clamped(ridge), size.right];
  const roof = y.clamped(peak);
  const memory = `M${left},${size.bottom}L${left},${y.clamped(beta * x.low)}L${middle},${roof}V${size.bottom}z`;
  const out = [
    shape("path", { class: "memory-bound", d: memory }),
    shape("path", { class: "compute-bound", d: `M${middle},${roof}H${right}V${size.bottom}H${middle}z` }),
  ];
  const word = (text, at, anchor) => shape("text", { class: "region", x: at, y: size.bottom - 10, "text-anchor": anchor }, text);
  if (middle - left > 110) out.push(word("memory-bound", middle - 10, "end"));
  if (right - middle > 110) out.push(word("compute-bound", middle + 10, "start"));
  return out;
}

function slopesOf(lines, size, x, y, main, labels) {
  return lines.slopes.map((slope) => {
    const top = main ? Math.min(main.rate, y.high) : y.high;
    const end = Math.min(x.high, top / slope.rate);
    const start = Math.max(x.low, y.low / slope.rate);
    const [x1, y1, x2, y2] = [x(start), y(start * slope.rate), x(end), y(end * slope.rate)];
    const angle = Math.atan2(y2 - y1, x2 - x1);
    const width = slope.label.length * LETTER;
    const boxesAt = (part) => {
      const boxes = [];
      for (let along = -0.5; along <= 0.51; along += 0.125) {
        const px = x1 + (x2 - x1) * part + along * width * Math.cos(angle) + 8 * Math.sin(angle);
        const py = y1 + (y2 - y1) * part + along * width * Math.sin(angle) - 8 * Math.cos(angle);
        boxes.push([px - 9, py - 9, px + 9, py + 9]);
      }
      return boxes;
    };
    const places = [0.3, 0.5, 0.7, 0.2, 0.4, 0.6, 0.8];
    const free = places.find((place) => boxesAt(place).every((box) => labels.isFree(box)));
    const line = shape("g", { class: slope.ceiling ? "ceiling" : "roof" }, shape("line", { x1, y1, x2, y2 }));
    if (free === undefined && slope.ceiling) return line;
    const part = free ?? places[0];
    for (const [a, b, c, d] of boxesAt(part)) labels.block(a, b, c - a, d - b);
    const [px, py] = [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
    const turn = `rotate(${(angle * 180) / Math.PI} ${px} ${py})`;
    line.append(shape("text", { x: px, y: py - 7, "text-anchor": "middle", transform: turn }, slope.label));
    return line;
  });
}

function roofsIn(lines, size, x, y, beta, labels) {
  return lines.roofs.map((roof) => {
    const height = y(roof.rate);
    const start = x.clamped(roof.rate / beta);
    const group = shape("g", { class: roof.ceiling ? "ceiling" : "roof" },
      shape("line", { x1: start, x2: size.right, y1: height, y2: height }));
    const width = roof.label.length * LETTER;
    const boxOf = (line) => [size.right - 6 - width, line - 10, size.right - 6, line + 2];
    const lines = roof.ceiling ? [height + 14] : [height - 6, height - 20, height - 34];
    const line = lines.find((at) => labels.isFree(boxOf(at)));
    labels.block(start, height - 1, size.right - start, 2, 0.2); // names have a halo, so they may cross a line
    if (!roof.ceiling || line !== undefined) {
      const at = line ?? lines[0];
      labels.block(boxOf(at)[0], boxOf(at)[1], width, 12);
      group.append(shape("text", { x: size.right - 6, y: at, "text-anchor": "end" }, roof.label));
    }
    return group;
  });
}

function ridgeOf(size, x, y, ridge, peak, labels) {
  const [at, top] = [x.clamped(ridge), y.clamped(peak)];
  const text = `ridge ${showNumber(ridge, 3)}`;
  const width = text.length * LETTER;
  const right = size.right - at > width + 16;
  labels.block(right ? at : at - width - 8, size.bottom - 46, width + 8, 18);
  return [
    shape("line", { class: "ridge", x1: at, x2: at, y1: top, y2: size.bottom }),
    shape("circle", { class: "ridge-point", cx: at, cy: top, r: 3.5 }),
    shape("text", { class: "ridge-label", x: at + (right ? 8 : -8), y: size.bottom - 32, "text-anchor": right ? "start" : "end" }, text),
  ];
}

/** The path of the kernel in focus as the parameter that was moved last grows. */
function trackOf(state, x, y) {
  const k = state.focus;
  const kernel = DATA.kernels[k];
  const parameter = kernel.parameters[state.swept[k]];
  if (!state.shown[k] || !parameter) return shape("g");
  const step = stepOf(kernel, state.sizes[k], parameter.name) * rowStep(state, k, parameter.name);
  const path = [];
  for (const stop of stopsUpTo(Math.max(1, Math.floor(parameter.most / step)), 3)) {
    const found = predicted(state, k, { ...state.sizes[k], [parameter.name]: stop * step });
    if (found.problem || !found.isOne || found.intensity === null || found.rate <= 0) continue;
    if (found.intensity < x.low || found.intensity > x.high || found.rate < y.low || found.rate > y.high) continue;
    path.push(`${x(found.intensity).toFixed(1)},${y(found.rate).toFixed(1)}`);
  }
  return shape("polyline", { class: `track kernel${k % 6}`, points: path.join(" ") });
}

/** The key: the meaning of lines and hollow points that have no label in the figure. */
function drawKey(state, place) {
  const rows = [];
  const swatch = (k, ...shapes) => shape("svg", { class: `swatch kernel${k % 6}`, viewBox: "0 0 34 16", "aria-hidden": "true" }, ...shapes);
  const line = (name) => shape("line", { class: name, x1: 4, x2: 30, y1: 8, y2: 8 });
  const k = state.focus;
  const kernel = DATA.kernels[k];
  const parameter = kernel.parameters[state.swept[k]];
  if (state.step >= STEPS && state.shown[k] && parameter) {
    rows.push([swatch(k, line("track")), `trail: where ${kernel.name} goes as ${parameter.name} grows to ${grouped(parameter.most)}`]);
  }
  const spans = state.step < STEPS ? [] : shownKernels(state).filter((i) => predicted(state, i).isOne === false);
  if (spans.length > 0) {
    const ends = [7, 27].map((x) => marker(spans[0], x, 8, 4, { class: "point open" }));
    rows.push([swatch(spans[0], line("interval"), ...ends), "interval: Q lies between two known values"]);
  }
  if (state.step >= STEPS && measuredPoints(state).length > 0) {
    rows.push([swatch(k, marker(k, 17, 8, 5, { class: "point open" })), "hollow: measured"]);
  }
  place.replaceChildren(...rows.map((row) => tag("li", {}, ...row)));
}

/** The step of a parameter with which rows keep beginning on line boundaries, so that the traffic is one number. */
function rowStep(state, k, name) {
  const { rows } = entryOf(state, k).forms[0];
  return rows?.steps?.[name] ?? 1;
}

function sizesText(kernel, values) {
  return kernel.parameters.map((p) => `${p.name} = ${grouped(values[p.name])}`).join(", ");
}

function pointMark(state, point, x, y, labels, main, beta) {
  const { k, found } = point;
  const [px, py] = [xOf(point, x), yOf(point, x, y)];
  const group = shape("g", {
    class: `kernel${k % 6}${k === state.focus ? " in-focus" : ""}`,
    "data-kernel": DATA.kernels[k].name, "data-intensity": point.ends[0].intensity ?? "", "data-rate": point.ends[0].rate,
    "data-most": point.ends[point.ends.length - 1].intensity ?? "", "data-verdict": found.bounds.join(" "),
  });
  if (!found.isOne && found.work > 0) return intervalMark(group, state, point, x, y, labels);
  if (point.intensity !== null && main) {
    const roof = y.clamped(Math.min(main.rate, point.intensity * beta));
    if (py - roof > 14) group.append(shape("line", { class: "drop", x1: px, x2: px, y1: roof, y2: py - 8 }));
  }
  group.append(marker(k, px, py, point.radius + (k === state.focus ? 1.5 : 0), { class: "point" }));
  const values = hasRoom(x) ? sizesText(DATA.kernels[k], state.sizes[k]) : "";
  const text = point.intensity === null
    ? `${DATA.kernels[k].name}: ${showBandwidth(found.bytesPerSecond, 3)}`
    : `${DATA.kernels[k].name}${values ? `, ${values}` : ""}`;
  group.append(labels.place(text, px, py, { class: "name" }, point.radius + 7));
  return group;
}

/** A kernel whose traffic is only known as an interval: hollow ends, joined by a line along what bounds it. */
function intervalMark(group, state, point, x, y, labels) {
  const { k, found } = point;
  const place = ({ intensity, rate }) => [x.clamped(intensity), y.clamped(Math.max(rate, y.low))];
  const [first, last] = point.ends;
  const memoryAt = (bytes) => { // seconds, interpolated linearly between the ends
    const { low, high } = found;
    if (!Number.isFinite(high.bytes)) return low.memory * (low.bytes > 0 ? bytes / low.bytes : 1);
    return low.memory + (high.memory - low.memory) * ((bytes - low.bytes) / (high.bytes - low.bytes || 1));
  };
  const [from, to] = [Math.max(first.intensity, x.low), Math.min(last.intensity, x.high)];
  const path = [];
  for (let s = 0; s <= 32; s += 1) {
    const intensity = from * (to / from) ** (s / 32);
    const seconds = timeOf(withMemory(found.terms, memoryAt(found.work / intensity)));
    path.push(place({ intensity, rate: found.work / seconds }).map((v) => v.toFixed(1)).join(","));
  }
  group.append(shape("polyline", { class: "interval", points: path.join(" ") }));
  for (const end of point.ends) group.append(marker(k, ...place(end), point.radius, { class: "point open" }));
  const values = hasRoom(x) ? sizesText(DATA.kernels[k], state.sizes[k]) : "";
  const text = `${DATA.kernels[k].name}${values ? `, ${values}` : ""}: interval`;
  group.append(labels.place(text, ...place(point), { class: "name" }, point.radius + 7));
  return group;
}

function measuredMark(point, x, y, labels) {
  const px = xOf(point, x);
  const at = (rate) => y.clamped(point.intensity === null ? rate * x.low : rate); // without operations, a rate is in bytes per second
  const group = shape("g", { class: `measured kernel${point.k % 6}` },
    shape("line", { x1: px, x2: px, y1: at(point.low), y2: at(point.high) }),
    marker(point.k, px, at(point.rate), 6, { class: "point open" }));
  const text = hasRoom(x) ? `measured ${point.row.label}, ${point.at}` : "measured";
  group.append(labels.place(text, px, at(point.rate), { class: "name small" }));
  return group;
}

/** What the figure shows, in words. */
function describe(state) {
  const machine = machineOf(state);
  const words = [`Memory ${machine.memory.name}: ${showBandwidth(machine.memory.bandwidth)}.`];
  if (state.step < STEPS) return words.join(" ");
  return [...words, ...shownKernels(state).map((k) => sentenceOf(state, k))].join(" ");
}

/** One sentence with a kernel's place and bound. */
function sentenceOf(state, k) {
  const kernel = DATA.kernels[k];
  const values = sizesText(kernel, state.sizes[k]);
  const found = predicted(state, k);
  const name = `${kernel.name}${values ? ` at ${values}` : ""}`;
  if (found.problem) return `${name}: ${found.problem}.`;
  const where = found.work === 0 ? `moves ${rateText(found)} and computes nothing` : `does ${intensityText(found)} and reaches ${rateText(found)}`;
  const bound = { compute: "compute-bound", launch: "bound by its launch" };
  const words = (names) => names.map((b) => bound[b] ?? `memory-bound (${b})`);
  const said = found.decided ? listed(words(found.bounds)) || "nothing is done" : `undecided, ${words(found.candidates).join(" or ")}`;
  return `${name} ${where}: ${said}.`;
}

/** What bounds a kernel, as written in the table. */
function boundText(found) {
  return found.decided ? listed(found.bounds) || "nothing" : `undecided: ${found.candidates.join(" or ")}`;
}

function intensityText(found) {
  if (found.work === 0) return "none";
  const [low, high] = [found.high.intensity ?? Infinity, found.low.intensity ?? Infinity];
  const unit = `${found.variant.operation}/B`;
  if (low === high && !Number.isFinite(low)) return "none";
  if (low === 0) return `≤ ${showNumber(high)} ${unit}`;
  return `${showSpan(low, high, showNumber)} ${unit}`;
}

function rateText(found) {
  const { low, high } = found;
  if (found.work === 0) return showSpan(low.bytesPerSecond, high.bytesPerSecond, showBandwidth);
  const show = (value) => showRate(value, found.variant.operation);
  return high.rate > 0 ? showSpan(high.rate, low.rate, show) : `≤ ${show(low.rate)}`;
}
