// Puts the parts together: a single state, and everything is redrawn after every change.

const QUIET_MS = 400; // the pause after the last change, before it is read out and put into the address

function start() {
  const find = (id) => document.getElementById(id);
  let state = fromHash(location.hash);
  let timer = 0;
  let written = "";

  /** The state stays the same object, because the controls refer to it. */
  function change(how) {
    how(state);
    draw();
    clearTimeout(timer);
    timer = setTimeout(settle, QUIET_MS);
  }

  function settle() {
    written = toHash(state);
    if (location.protocol !== "about:") { // inside a notebook there is no address
      history.replaceState(null, "", written ? `#${written}` : location.pathname + location.search);
    }
    const text = sentenceOf(state, state.focus);
    if (find("status").textContent !== text) find("status").textContent = text;
  }

  const refresh = controlsOf(state, change);

  function draw() {
    document.documentElement.dataset.theme = state.theme;
    find("theme").textContent = isDark(state) ? "Light" : "Dark";
    refresh();
    drawStep();
    drawRoofline(state, find("roofline"));
    drawKey(state, find("roofline-key"));
    drawBars(state, find("bars"));
    drawCurve(state, find("curve"), find("curve-text"));
    drawTable(state, find("table"), find("notes"));
    document.querySelectorAll("details[data-kernel]").forEach((details) => {
      details.classList.toggle("in-focus", Number(details.dataset.kernel) === state.focus);
    });
    nameScrolled();
  }

  function drawStep() {
    const [title, text] = ANATOMY[state.step - 1];
    find("step-title").textContent = `${state.step} of ${STEPS}: ${title}.`;
    find("step-text").textContent = text;
    find("previous").disabled = state.step === 1;
    find("next").disabled = state.step === STEPS;
  }

  find("previous").addEventListener("click", () => change((s) => { s.step = Math.max(1, s.step - 1); }));
  find("next").addEventListener("click", () => change((s) => { s.step = Math.min(STEPS, s.step + 1); }));
  find("theme").addEventListener("click", () => change((s) => { s.theme = isDark(s) ? "light" : "dark"; }));
  find("skip").addEventListener("click", (event) => {
    event.preventDefault(); // in the address, the part after # is for the state
    find("controls").focus();
  });
  find("copy").hidden = location.protocol === "about:";
  find("copy").addEventListener("click", async () => {
    settle();
    try {
      await navigator.clipboard.writeText(location.href);
      find("status").textContent = "The link is copied.";
    } catch {
      find("status").textContent = "Copy the address of this page: it contains your settings.";
    }
  });
  window.addEventListener("hashchange", () => {
    if (location.hash.slice(1) === written) return;
    Object.assign(state, fromHash(location.hash));
    draw();
    settle();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = 0;
  new ResizeObserver(() => {
    if (find("roofline").clientWidth === width) return;
    width = find("roofline").clientWidth;
    draw();
  }).observe(find("roofline"));
  document.querySelectorAll("details").forEach((details) => details.addEventListener("toggle", nameScrolled));
  draw();
  settle();
}

/** Elements wider than their place can be scrolled by keyboard, too: they can be reached with Tab, and have a name. */
function nameScrolled() {
  const nameOf = (element, place) => {
    const kernel = DATA.kernels[element.closest("details")?.dataset.kernel]?.name;
    if (kernel === undefined) return "The numbers, a wide table";
    return element.matches("pre") ? `${kernel}: source` : `${kernel}: derivation, part ${place}`;
  };
  document.querySelectorAll(".wide, pre").forEach((element, place) => {
    const given = { tabindex: "0", role: "region", "aria-label": nameOf(element, place) };
    const isWide = element.scrollWidth > element.clientWidth;
    for (const [name, value] of Object.entries(given)) {
      if (isWide) element.setAttribute(name, value);
      else element.removeAttribute(name);
    }
  });
}

function isDark(state) {
  return state.theme === "dark" || (state.theme === "" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** All numbers of the kernels shown, and the notes on what they rest on. */
function drawTable(state, table, notes) {
  const memory = machineOf(state).memory.name;
  const head = ["kernel", "W", "Q", "I", "compute", memory, "launch", "time at the bound", "rate", "bound"];
  const rows = shownKernels(state).map((k) => {
    const kernel = DATA.kernels[k];
    const found = predicted(state, k);
    const values = sizesText(kernel, state.sizes[k]);
    const name = tag("th", { scope: "row" }, legend(k), `${kernel.name}${values ? `, ${values}` : ""}`);
    if (found.problem) return tag("tr", {}, name, tag("td", { colspan: head.length - 1 }, found.problem));
    const { low, high } = found;
    const cells = [
      [showWork(found.work, found.variant.operation), found.work],
      [signOf(found) + showSpan(low.bytes, high.bytes, showBytes), low.bytes, high.bytes],
      [intensityText(found), high.intensity, low.intensity],
      [showTime(found.compute), found.compute], [showSpan(low.memory, high.memory, showTime), low.memory, high.memory],
      [showTime(found.launch), found.launch], [showSpan(low.time, high.time, showTime), low.time, high.time],
      [rateText(found), high.rate, low.rate],
      [boundText(found), ""],
    ];
    return tag("tr", { "data-kernel": kernel.name, "data-how": found.moved.how }, name,
      ...cells.map(([text, value, most = value], i) => tag("td", {
        "data-column": head[i + 1], "data-value": String(value ?? ""), "data-most": String(most ?? ""),
      }, text)));
  });
  table.replaceChildren(
    tag("thead", {}, tag("tr", {}, ...head.map((name) =>
      tag("th", { scope: "col" }, ...(["compute", memory, "launch"].includes(name) ? termName(name) : [name]))))),
    tag("tbody", {}, ...rows),
  );
  notes.replaceChildren(...notesOf(state).map((text) => tag("li", {}, text)));
}

/** The sign in front of an amount of bytes: `≈` for a single number that may not be exactly what the machine moves. */
function signOf({ moved, isOne }) {
  return isExact(moved) || !isOne ? "" : "≈ ";
}

/** The notes on what the numbers rest on, each once. */
function notesOf(state) {
  const machine = machineOf(state);
  const out = [];
  if (shownKernels(state).some((k) => unitOf(DATA.kernels[k], state.unit) === "tensor_sparse")) {
    out.push("the sparse peak of matrix units is that of the data sheet: only products with half-zero (2:4 sparse) matrices reach it");
  }
  if (machine.source) out.push(`${machine.title}: ${machine.source}`);
  for (const k of shownKernels(state)) {
    const kernel = DATA.kernels[k];
    const found = predicted(state, k);
    if (found.problem) continue;
    out.push(`${kernel.name}: Q is ${howText(found.moved)}`);
    if (machine.memory.duplex) {
      const both = `loads and stores of ${kernel.name}`;
      const how = found.moved.low.loads ? `${both} cross at the same time` : `${both} are not distinguished here, so they take turns`;
      out.push(`${machine.memory.name}: ${how}`);
    }
    for (const text of [...found.entry.notes, ...found.rates.notes]) out.push(text);
    if (kernel.blocks.includes(machine.name)) {
      out.push(`${kernel.name}: counted in the order of its loops; roofdsl predict counts by thread blocks on this machine`);
    }
    if (typeOf(state, k) !== kernel.own) {
      out.push(`${kernel.name}: written in ${kernel.own}, shown as if all its data were ${typeOf(state, k)}`);
    }
    if (state.unit && !kernel.contraction) out.push(`${kernel.name} is not a contraction and runs on ordinary units`);
  }
  for (const row of DATA.measured) {
    if (row.stale) out.push(`${row.kernel} has changed since it was measured`);
    const where = "drawn at the intensity that is predicted for the selected machine";
    out.push(`measured on ${row.device}, ${row.label}, caches ${row.state}: ${where}`);
  }
  out.push("T_comms is for the traffic between fast memory and the machine's memory alone; roofdsl predict times every cache too");
  return [...new Set(out)];
}

start();
