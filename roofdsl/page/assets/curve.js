// Q(Z) of the kernel in focus: the exact curve if there is one, plateaus, the machine's caches, and the chosen cache.

const SAMPLES = 360;

/** Q for a cache of `bytes` bytes, by the same forms as the machine's prediction; null if they say nothing about it. */
function curveAt(entry, values, bytes) {
  const found = trafficAt(entry, values, BigInt(Math.round(bytes)));
  if (!found) return null;
  return { ...found, value: toNumber(found.low.bytes), most: found.high ? toNumber(found.high.bytes) : null };
}

/** The forms whose plateaus are drawn: those in the machine's lines if they have any, else those in single elements. */
function plateauForms(entry) {
  return entry.forms.find((forms) => forms.plateaus.length > 0) ?? entry.forms[entry.forms.length - 1];
}

/** The plateaus at these sizes: [{start, end, value, text}]; the last one has the end null. */
function plateausAt(forms, values) {
  const sizes = sizesOf(values);
  const rows = [];
  for (const plateau of plateausFor(forms, sizes)) {
    const bytes = valueOf(plateau.whole, sizes);
    if (bytes === null) continue;
    const start = toNumber(FUNCTIONS[plateau.start](sizes));
    while (rows.length > 0 && rows[rows.length - 1].start >= start) rows.pop(); // here, the later plateau begins first
    if (rows.length > 0) rows[rows.length - 1].end = start;
    rows.push({ start, end: null, value: toNumber(bytes), text: plateau.text });
  }
  return rows;
}

/** All numbers of the figure: {least, high, points, rows, caches, amounts}. */
function curveContent(state, entry, values, chosen) {
  const { least } = entry.forms[0];
  const rows = plateausAt(plateauForms(entry), values);
  const whole = entry.forms.map((forms) => footprint(forms, values)).find(Boolean);
  const caches = machineOf(state).caches.filter((c) => c.size >= least);
  const ends = [...rows.map((r) => r.start), ...caches.map((c) => c.size), Number(chosen ?? 0)];
  const high = Math.max(4 * Math.max(whole ? toNumber(whole) : 0, ...ends), least * 64);
  const points = [];
  for (let s = 0; s <= SAMPLES; s += 1) {
    const bytes = least * (high / least) ** (s / SAMPLES);
    const found = curveAt(entry, values, bytes);
    if (found) points.push({ ...found, cache: bytes });
  }
  const amounts = [...points, ...rows].flatMap((p) => [p.value, p.most ?? p.value]).filter((v) => v > 0);
  return { least, high, points, rows, caches, amounts };
}

function drawCurve(state, place, words) {
  const k = state.focus;
  const kernel = DATA.kernels[k];
  const now = predicted(state, k);
  const say = (text) => {
    place.replaceChildren(tag("p", {}, text));
    words.textContent = "";
  };
  if (now.problem) return say(`${now.problem}.`);
  const chosen = cacheOf(state);
  const content = curveContent(state, now.entry, state.sizes[k], chosen);
  if (content.amounts.length === 0) return say("Nothing is moved.");
  const size = frameOf(place, 0.72, 270);
  const [bottom, top] = [Math.min(...content.amounts), Math.max(...content.amounts)];
  const room = top / bottom;
  const x = logScale([content.least, content.high], [size.left, size.right]);
  const y = logScale(
    [bottom / Math.max(1.6, room ** 0.08), top * Math.max(1.8, room ** 0.12)],
    [size.bottom, size.top],
  );
  const labels = new Labels(size);
  const convention = now.entry.convention === "once" ? "each datum once" : now.entry.convention;
  const titles = { x: "fast memory Z", y: `traffic Q, ${convention}` };
  const text = curveText(kernel, now.entry, now, chosen);
  show(place, size, `Traffic of ${kernel.name} over cache size`, text,
    axes(size, { x, y }, { x: sizeTicks(x), y: byteTicks(y) }, titles),
    ...cacheLines(content.caches, size, x, labels),
    ...plateauLines(content, x, y, labels),
    ...runsOf(content.points).map((run) => runLine(run, k, x, y)),
    chosenMark(k, now, chosen, size, x, y, labels),
  );
  words.textContent = text;
}

/** The machine's caches as vertical lines; their names stand below each other where they would overlap. */
function cacheLines(caches, size, x, labels) {
  return caches.flatMap((c) => {
    const [at, name] = [x.clamped(c.size), `${c.name} ${showSize(c.size)}`];
    const [end, width] = [at - 5, name.length * LETTER];
    const rows = [14, 30, 46, 62].map((down) => size.top + down);
    const row = rows.find((y) => labels.isFree([end - width, y - 12, end, y + 4])) ?? rows[0];
    labels.block(end - width, row - 12, width, 16);
    return [
      shape("line", { class: "cache", x1: at, x2: at, y1: size.top, y2: size.bottom }),
      shape("text", { class: "cache", x: end, y: row, "text-anchor": "end" }, name),
    ];
  });
}

/** Plateaus as dashed lines, with their formulas if there is room. */
function plateauLines({ rows, high }, x, y, labels) {
  return rows.flatMap((row) => {
    const [from, to, height] = [x.clamped(row.start), x.clamped(row.end ?? high), y(row.value)];
    const line = shape("line", { class: "plateau", x1: from, x2: to, y1: height, y2: height });
    if (to - from <= row.text.length * 7 + 14) return [line];
    labels.block(from, height - 20, to - from, 24);
    const middle = { class: "plateau", x: (from + to) / 2, y: height - 7, "text-anchor": "middle" };
    return [line, shape("text", middle, `${row.text} B`)];
  });
}

/** A run of samples as a line or, if only bounds are known, as the area between them. */
function runLine(run, k, x, y) {
  if (isRange(run[0])) {
    const at = (p, value) => `${x(p.cache).toFixed(1)},${y.clamped(value).toFixed(1)}`;
    const around = [...run.map((p) => at(p, p.most ?? y.high)), ...run.map((p) => at(p, p.value)).reverse()];
    return shape("polygon", { class: `between kernel${k % 6}`, points: around.join(" ") });
  }
  const points = run.map((p) => `${x(p.cache).toFixed(1)},${y.clamped(p.value).toFixed(1)}`).join(" ");
  return shape("polyline", { class: `curve kernel${k % 6} ${run[0].how}`, points });
}

/** The mark at the selected cache size and the bytes that it moves. */
function chosenMark(k, now, chosen, size, x, y, labels) {
  const [at, height] = [chosen === null ? size.right : x.clamped(Number(chosen)), y.clamped(now.bytes)];
  const group = shape("g", {
    class: `kernel${k % 6} in-focus`, "data-cache": chosen === null ? "none" : String(chosen),
    "data-bytes": now.low.bytes, "data-most": now.high.bytes,
  });
  group.append(shape("line", { class: "chosen", x1: at, x2: at, y1: size.top, y2: size.bottom }));
  if (now.isOne) group.append(marker(k, at, height, 7, { class: "point" }));
  else {
    const least = y.clamped(now.low.bytes);
    group.append(shape("line", { class: "interval", x1: at, x2: at, y1: height, y2: least }));
    for (const end of [height, least]) group.append(marker(k, at, end, 6, { class: "point open" }));
  }
  group.append(labels.place(showSpan(now.low.bytes, now.high.bytes, showBytes), at, height, { class: "name" }));
  return group;
}

/** Consecutive samples that were obtained in the same way, as runs. */
function runsOf(points) {
  const runs = [];
  for (const point of points) {
    const last = runs[runs.length - 1];
    const kind = (p) => (isRange(p) ? `range ${p.how}` : p.how === "plateau" ? "plateau" : "exact");
    if (last && kind(last[0]) === kind(point)) last.push(point);
    else runs.push([point]);
  }
  return runs;
}

/** Ticks at powers of 32: 1 KiB, 32 KiB, 1 MiB; if they are too close, at every second power, and so on. */
function sizeTicks(x) {
  const out = [];
  const apart = Math.abs(x(2) - x(1));
  const every = Math.max(1, 5 * Math.ceil(56 / (5 * apart)));
  for (let k = 0; 2 ** k <= x.high; k += every) if (2 ** k >= x.low) out.push([2 ** k, showSize(2 ** k)]);
  return out;
}

function byteTicks(y) {
  const ticks = powers(y, 26).map((e) => [10 ** e, showBytes(10 ** e)]);
  if (ticks.length > 1) return ticks;
  const decade = 10 ** Math.floor(Math.log10(y.low));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 80].map((f) => f * decade)
    .filter((v) => v >= y.low && v <= y.high).map((v) => [v, showBytes(v)]);
}

function curveText(kernel, entry, now, chosen) {
  const cache = chosen === null ? "Without bound" : `At Z = ${showSize(Number(chosen))}`;
  const intensity = now.work === 0 ? "" : `, ${intensityText(now)}`;
  const lines = now.moved.forms.line === null ? "lines of one element" : `lines of ${showSize(now.moved.forms.line)}`;
  const why = now.moved.how === "least" && entry.forms[0].note ? ` (${entry.forms[0].note})` : "";
  return `${cache}, ${kernel.name} moves ${showSpan(now.low.bytes, now.high.bytes, showBytes)}${intensity}: ${howText(now.moved)}${why}. `
    + `Fully associative LRU, ${lines}, convention ${entry.convention} (${entry.because}). `
    + "Solid line: closed form. Dashed: plateaus. Shaded: between the least and the most.";
}
