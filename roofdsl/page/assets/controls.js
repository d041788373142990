// Choices and sliders. Everything works by keyboard, and every control announces its name and its value.

/** A slider over numbers spaced evenly on a logarithmic scale; with `number`, a box beside it takes any whole one. */
function knob({ label, stops, value, text, change, number }) {
  const distance = (i, v) => Math.abs(Math.log(stops[i] / v));
  const nearest = (v) => stops.reduce((best, _, i) => (distance(i, v) < distance(best, v) ? i : best), 0);
  const slider = tag("input", {
    type: "range", min: 0, max: stops.length - 1, step: 1, "aria-label": label,
    oninput: () => { tell(""); change(stops[Number(slider.value)]); },
  });
  const parts = [tag("span", { class: "knob-label", "aria-hidden": "true" }, label), slider];
  let box = null;
  let tell = () => {}; // shows what is wrong with the number in the box; an empty text clears the message
  if (number) {
    const place = tag("p", { class: "wrong", role: "alert", id: `wrong-${label.replace(/\W+/g, "-")}` });
    box = tag("input", {
      type: "number", min: 1, max: LARGEST, step: 1, "aria-label": `${label}, as a number`,
      oninput: () => { if (wholeOf(box.value, null) !== null) tell(""); },
      onchange: () => {
        const given = wholeOf(box.value, null);
        tell(given === null ? `${label} takes a whole number from 1 to ${grouped(LARGEST)}; it stays at ${grouped(value())}.` : "");
        if (given !== null) change(given);
      },
    });
    tell = (text) => {
      place.textContent = text;
      box.setAttribute("aria-invalid", String(text !== ""));
      if (text) box.setAttribute("aria-describedby", place.id);
      else box.removeAttribute("aria-describedby");
    };
    parts.push(box, place);
  }
  const shown = tag("output", { "aria-hidden": "true" });
  parts.push(shown);
  return {
    element: tag("div", { class: "knob" }, ...parts),
    refresh() {
      slider.value = String(nearest(value()));
      slider.setAttribute("aria-valuetext", text());
      const isWrong = box?.getAttribute("aria-invalid") === "true";
      if (box && !isWrong && document.activeElement !== box) box.value = String(value());
      shown.textContent = text();
    },
  };
}

/** Fills a list of choices; `refresh` selects the current one, as it updates all controls. */
function choices(select, rows, change) {
  select.replaceChildren(...rows.map(([value, text]) => tag("option", { value }, text)));
  select.onchange = () => change(select.value);
}

const UNIT_NAMES = {
  "": DATA.kernels.some((kernel) => kernel.unit) ? "as written" : "ordinary units",
  tensor: "matrix units, dense",
  tensor_sparse: "matrix units, sparse peak",
};

/** The controls of the whole page. `change` takes a function that changes the state, and redraws. Returns `refresh`. */
function controlsOf(state, change) {
  const find = (id) => document.getElementById(id);
  const refreshers = [];
  const types = DATA.types.filter((t) => t !== "as written");
  choices(find("machine"), DATA.machines.map((m, i) => [String(i), m.title]), (value) =>
    change((s) => { s.machine = Number(value); s.cache = "machine"; }));
  choices(find("type"), [["", "as written"], ...types.map((t) => [t, t])], (value) =>
    change((s) => { s.type = value; }));
  choices(find("unit"), DATA.units.map((u) => [u, UNIT_NAMES[u]]), (value) =>
    change((s) => { s.unit = value; }));
  choices(find("focus"), DATA.kernels.map((k, i) => [String(i), k.title]), (value) =>
    change((s) => { s.focus = Number(value); }));
  refreshers.push(() => { find("machine").value = String(state.machine); });
  refreshers.push(() => { find("type").value = state.type; });
  refreshers.push(() => { find("unit").value = state.unit; });
  refreshers.push(() => { find("focus").value = String(state.focus); });
  refreshers.push(cacheControl(state, change, find("cache")));
  const boxes = DATA.kernels.map((kernel, k) => kernelControl(state, change, kernel, k));
  find("kernels").replaceChildren(...boxes.map((b) => b.element));
  refreshers.push(...boxes.map((b) => b.refresh));
  return () => refreshers.forEach((refresh) => refresh());
}

/** The size of fast memory: the machine's, any other, or unbounded. */
function cacheControl(state, change, place) {
  const least = Math.max(16, ...DATA.kernels.flatMap((k) =>
    Object.values(k.variants).flatMap((v) => Object.values(v.machines).flatMap((e) => e.forms.map((f) => f.least)))));
  const stops = [];
  for (let bytes = least; bytes <= 2 ** 33; bytes *= 2) {
    for (const part of [1, 1.25, 1.5, 1.75]) stops.push(Math.round(bytes * part));
  }
  const endless = stops[stops.length - 1] * 2;
  stops.push(endless);
  const bytes = () => {
    const cache = cacheOf(state);
    return cache === null ? endless : Number(cache);
  };
  const text = () => (cacheOf(state) === null ? "unlimited" : showSize(Number(cacheOf(state))));
  const slider = knob({
    label: "fast memory Z", stops, value: bytes, text,
    change: (value) => change((s) => { s.cache = value === endless ? "none" : value; }),
  });
  const reset = tag("button", { type: "button", onclick: () => change((s) => { s.cache = "machine"; }) });
  place.replaceChildren(...slider.element.childNodes, reset);
  return () => {
    slider.refresh();
    const { cache } = machineOf(state);
    const own = cache === null ? "unlimited" : `${cache.name} ${showSize(cache.size)}`;
    reset.textContent = `as on the machine: ${own}`;
    reset.setAttribute("aria-pressed", String(state.cache === "machine"));
  };
}

function kernelControl(state, change, kernel, k) {
  const shown = tag("input", { type: "checkbox", onchange: () => change((s) => { s.shown[k] = shown.checked; }) });
  const sliders = kernel.parameters.map((parameter, index) => knob({
    label: `${parameter.name} of ${kernel.name}`,
    stops: stopsUpTo(parameter.most, parameter.tile ? 1 : 16),
    value: () => state.sizes[k][parameter.name],
    text: () => `${parameter.name} = ${grouped(state.sizes[k][parameter.name])}`,
    number: true,
    change: (value) => change((s) => {
      s.sizes[k] = withSize(kernel, s.sizes[k], parameter.name, value);
      s.focus = k;
      s.swept[k] = index;
    }),
  }));
  const crossing = tag("p", { class: "crossing" });
  const title = tag("label", {}, shown, legend(k), tag("strong", {}, kernel.title));
  const set = tag("fieldset", { class: `kernel${k % 6}` }, tag("legend", {}, title), ...sliders.map((s) => s.element), crossing);
  if (kernel.assumed.length > 0) set.append(tag("p", { class: "assumed" }, `with ${kernel.assumed.join(", ")}`));
  return {
    element: set,
    refresh() {
      shown.checked = state.shown[k];
      sliders.forEach((slider) => slider.refresh());
      crossing.replaceChildren(...crossingText(state, change, kernel, k));
    },
  };
}

/** The sizes from which another term is the longest, with buttons that go there. */
function crossingText(state, change, kernel, k) {
  const parameter = kernel.parameters[state.swept[k]];
  const now = predicted(state, k);
  if (now.problem) return [`${now.problem}.`];
  if (!parameter || now.work === 0) return [];
  const predict = (values) => predicted(state, k, values);
  const found = crossings(kernel, parameter.name, parameter.most, state.sizes[k], predict);
  const upTo = `${parameter.name} up to ${grouped(parameter.most)}`;
  if (found.length === 0) return [`Undecided for ${upTo}.`];
  if (found.length === 1) return [...termName(found[0].longest), ` is the longest term for every ${upTo}, wherever the page can decide.`];
  const words = { compute: "compute-bound", launch: "bound by its launch" };
  return found.slice(1, 1 + MOST_SHOWN).flatMap(({ from, after, longest }, index) => [
    index > 0 ? "; " : "",
    `${words[longest] ?? "memory-bound"} from `,
    tag("button", {
      type: "button", class: "jump", "data-size": from, "data-after": after, "data-longest": longest,
      onclick: () => change((s) => { s.sizes[k] = withSize(kernel, s.sizes[k], parameter.name, from); s.focus = k; }),
    }, `${parameter.name} = ${grouped(from)}`),
    from - after > stepOf(kernel, state.sizes[k], parameter.name) ? ` at the latest, after ${grouped(after)}` : "",
  ]);
}

const MOST_SHOWN = 4; // at most this many changes of what bounds a kernel are listed
