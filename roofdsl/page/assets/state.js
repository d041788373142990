// The reader's choices, which are also kept in the address, so that a link shows them again.

const STEPS = 5;
const LARGEST = Number.MAX_SAFE_INTEGER;

/**
 * The initial state. cache: "machine", "none" (unbounded) or bytes. sizes, shown, swept: one entry per kernel; swept:
 * the index of the parameter that was moved last, at first that of the first one that is no tile size.
 */
function firstState() {
  return {
    machine: 0,
    type: "",
    unit: DATA.unit,
    cache: "machine",
    focus: 0,
    step: STEPS,
    theme: "",
    shown: DATA.kernels.map(() => true),
    sizes: DATA.kernels.map((kernel) => Object.fromEntries(kernel.parameters.map((p) => [p.name, p.value]))),
    swept: DATA.kernels.map((kernel) => Math.max(0, kernel.parameters.findIndex((p) => !p.tile))),
  };
}

/** The state, without `swept`, as the part of an address after `#`: only what differs from the initial state. */
function toHash(state) {
  const start = firstState();
  const out = new URLSearchParams();
  const put = (key, value, usual) => {
    if (value !== usual) out.set(key, String(value));
  };
  put("machine", DATA.machines[state.machine].name, DATA.machines[0].name);
  put("type", state.type, start.type);
  put("unit", state.unit, start.unit);
  put("Z", state.cache, start.cache);
  put("kernel", DATA.kernels[state.focus].name, DATA.kernels[0].name);
  put("step", state.step, start.step);
  put("theme", state.theme, start.theme);
  DATA.kernels.forEach((kernel, k) => {
    put(`${kernel.name}.shown`, state.shown[k], true);
    for (const { name, value } of kernel.parameters) put(`${kernel.name}.${name}`, state.sizes[k][name], value);
  });
  return out.toString();
}

/** The whole number from 1 to `most` that a text is; `usual` for any other text. */
function wholeOf(text, usual, most = LARGEST) {
  const value = /^\d{1,16}$/.test(text ?? "") ? Number(text) : NaN;
  return value >= 1 && value <= most ? value : usual;
}

/** The state from an address; anything in it that is unknown or not a number is ignored. */
function fromHash(text) {
  const state = firstState();
  const given = new URLSearchParams(text.replace(/^#/, ""));
  const pick = (key, all, usual) => {
    const found = all.indexOf(given.get(key));
    return found >= 0 ? found : usual;
  };
  state.machine = pick("machine", DATA.machines.map((m) => m.name), 0);
  state.focus = pick("kernel", DATA.kernels.map((k) => k.name), 0);
  state.type = DATA.types.includes(given.get("type")) ? given.get("type") : "";
  state.unit = DATA.units.includes(given.get("unit")) ? given.get("unit") : state.unit;
  const cache = given.get("Z");
  state.cache = cache === "none" ? cache : wholeOf(cache, "machine");
  state.step = wholeOf(given.get("step"), STEPS, STEPS);
  state.theme = ["light", "dark"].includes(given.get("theme")) ? given.get("theme") : "";
  DATA.kernels.forEach((kernel, k) => {
    state.shown[k] = given.get(`${kernel.name}.shown`) !== "false";
    for (const { name } of kernel.parameters) {
      state.sizes[k][name] = wholeOf(given.get(`${kernel.name}.${name}`), state.sizes[k][name]);
    }
  });
  return state;
}

function machineOf(state) {
  return DATA.machines[state.machine];
}

/** The type in which kernel k is shown. */
function typeOf(state, k) {
  const kernel = DATA.kernels[k];
  return state.type in kernel.variants ? state.type : kernel.own;
}

/** The cache size in bytes as a BigInt; null if it is unbounded. */
function cacheOf(state) {
  if (state.cache === "none") return null;
  if (state.cache !== "machine") return BigInt(state.cache);
  const { cache } = machineOf(state);
  return cache === null ? null : BigInt(cache.size);
}

/** The prediction of kernel k, at its current sizes or others. */
function predicted(state, k, values = state.sizes[k], cache = cacheOf(state)) {
  return predictionAt(DATA.kernels[k], typeOf(state, k), machineOf(state), state.unit, values, cache);
}

/** The traffic and rates of kernel k in its type on the machine. */
function entryOf(state, k) {
  return DATA.kernels[k].variants[typeOf(state, k)].machines[machineOf(state).name];
}

/** The kernels shown, by number. */
function shownKernels(state) {
  return DATA.kernels.map((_, k) => k).filter((k) => state.shown[k]);
}
