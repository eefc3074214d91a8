// "Predict yours": the form's values in, the page's numbers out. Everything computed comes from the
// functions above, which the build translated from Python; this part reads, asks and prints.
const form = document.getElementById("yours");
const SAID = document.getElementById("yours-said");
const field = name => form.elements.namedItem(name);
const NUMBERS = {  // least, most, whole; what an empty field means
  bandwidth: [1e-3, 1e6, false], compute: [1e-6, 1e6, false, null], memory: [1e-3, 1e6, false, null],
  depth: [0, 1e7, true], batch: [1, 4096, true],
};
const OWN_VENDOR = {CPU: "cpu", CUDA: "nvidia", Metal: "apple", ROCm: "amd"};

function ask(state) {
  const [name, , , , , backend, vendor, generation, two_dies, ratio] = DATA.machines[state.machine] || ["", , , , , "", "", DATA.own, false, 1];
  const other = state.backend !== backend;  // as the command line takes another backend: the CPU has no generation
  const cpu = other && state.backend === "CPU";
  const maker = cpu ? "cpu" : vendor || OWN_VENDOR[state.backend] || state.backend.split("-")[1] || "other";
  const peak = state.compute === null ? null : state.compute * 1e12;
  const device = new calibrated_Device(state.backend, maker, cpu ? "cpu" : generation, state.bandwidth * 1e9, peak === null ? null : peak * ratio, two_dies);
  const model = DATA.models[state.model];
  const [file_bytes, params, weights] = model.formats[state.format];
  const subject = yours_subject(model.name, state.format, model.arch, model.counts, weights, model.layers);
  return new yours_Ask(device, peak, state.memory === null ? null : state.memory * 1e9, subject, file_bytes, params, state.depth, state.batch, state.kv);
}

const answer = state => yours_answer(ask(state), DATA.coefficients, DATA.intervals);
globalThis.inklabPredict = answer;  // for the console: inklabPredict({...}) with the form's names

function shown(name, x, bare = false) {
  if (x === null || x === undefined || !Number.isFinite(x)) return DATA.unknown;
  const [unit, factor, digits] = DATA.slots[name];
  const n = x / factor;
  return decimal(n, digits === null ? values_decimals_for(n) : digits) + (bare ? "" : "\u202f" + unit);
}

function print(state) {
  const asked = ask(state), found = yours_answer(asked, DATA.coefficients, DATA.intervals), model = DATA.models[state.model];
  for (const slot of document.querySelectorAll("[data-slot]")) {
    const x = found[slot.dataset.slot] ?? null;
    slot.textContent = shown(slot.dataset.slot, x, "bare" in slot.dataset);
    if (slot.tagName === "DATA") slot.value = x === null ? "" : String(x);
  }
  const texts = {
    ...yours_words(asked, found), ...yours_commands(asked, yours_page_yours_file(state.model, state.format), model.formats[state.format][3]),
    machine: DATA.machines[state.machine] ? DATA.machines[state.machine][0] : "Your machine", model: model.name, format: state.format, depth: decimal(state.depth, 0),
  };
  for (const slot of document.querySelectorAll("[data-text]")) {
    slot.textContent = texts[slot.dataset.text];
    if (slot.tagName === "DATA") slot.value = slot.textContent;
  }
  printFormats(state, model);
  return yours_page_sentence(texts.machine, texts.model, texts.format, texts.depth, shown("decode", found.decode), shown("ceiling", found.ceiling), texts.fit);
}

function printFormats(state, model) {
  const box = document.getElementById("yours-formats"), spare = box.querySelector("template").content.firstElementChild;
  box.querySelector("tbody").replaceChildren(...Object.keys(model.formats).map(format => {
    const asked = ask({...state, format}), found = {...yours_first_order(asked), ...yours_fits(asked)}, row = spare.cloneNode(true);
    for (const cell of row.querySelectorAll("[data-f]")) cell.textContent = cell.dataset.f === "format" ? format : shown(cell.dataset.f, found[cell.dataset.f]);
    return row;
  }));
}

// A field's number, and what is wrong with it.
function number(name) {
  const [least, most, whole, empty] = NUMBERS[name], got = field(name).value.trim(), n = Number(got);
  if (got === "" && empty !== undefined) return [empty, ""];
  if (got !== "" && n >= least && n <= most && (!whole || Number.isInteger(n))) return [n, ""];
  return [empty, `A ${whole ? "whole " : ""}number from ${decimal(least, values_decimals_for(least, 1))} to ${decimal(most, 0)} is needed; got ${got || "nothing"}.`];
}

// The form -> a state, or the fields that are wrong with what is wrong.
function read() {
  const state = {}, wrong = {};
  for (const name of ["machine", "backend", "model", "format", "kv"]) state[name] = field(name).value;
  for (const name of Object.keys(NUMBERS)) {
    const [n, problem] = number(name);
    if (problem) wrong[name] = problem;
    else state[name] = n;
  }
  return [state, wrong];
}

function pickMachine() {
  const row = DATA.machines[field("machine").value];
  if (!row) return;
  for (const [i, name] of [[2, "bandwidth"], [3, "compute"], [4, "memory"], [5, "backend"]]) field(name).value = row[i] ?? "";
}

function pickModel() {
  const formats = Object.keys(DATA.models[field("model").value].formats), kept = field("format").value;
  options(field("format"), [["", formats.map(f => [f, f])]], formats.includes(kept) ? kept : formats.includes(DATA.start.format) ? DATA.start.format : formats[0]);
}

// The form's lists, a part at a time.
function* fill() {
  form.reset();
  options(field("backend"), [["", DATA.backends.map(b => [b, b])]], field("backend").value);
  options(field("kv"), [["", DATA.kv.map(k => [k, k])]], DATA.start.kv);
  yield;
  options(field("model"), [["", Object.entries(DATA.models).map(([id, m]) => [id, m.name])]], DATA.start.model);
  pickModel();
  yield;
  const groups = Map.groupBy ? Map.groupBy(Object.entries(DATA.machines), ([, row]) => row[1]) : Object.entries(DATA.machines).reduce(
    (all, entry) => all.set(entry[1][1], [...(all.get(entry[1][1]) || []), entry]), new Map());
  options(field("machine"), [["", [[DATA.own, "Another machine, as typed below"]]]], "");
  for (const [group, rows] of groups) {
    field("machine").append(...optgroup([group, rows.map(([id, row]) => [id, row[0]])], DATA.start.machine));
    yield;
  }
}

// What a link carries: what differs from the example, and a machine's numbers only where they were typed.
function address(state) {
  const query = new URLSearchParams();
  for (const name of ["machine", "model", "format", "depth", "batch", "kv"])
    if (String(state[name]) !== String(DATA.start[name])) query.set(name, state[name]);
  const row = DATA.machines[state.machine] || [];
  for (const [i, name] of [[2, "bandwidth"], [3, "compute"], [4, "memory"], [5, "backend"]])
    if ((row[i] ?? null) !== state[name]) query.set(name, state[name] ?? "");
  return query;
}

// Names that a link carries and this build does not know are left out, not guessed.
function fromAddress() {
  const query = new URLSearchParams(location.search), unknown = [];
  const take = name => {
    if (!query.has(name)) return false;
    const before = field(name).value, got = query.get(name);
    field(name).value = got;
    if (field(name).value === got && (!(name in NUMBERS) || number(name)[1] === "")) return true;
    unknown.push(`${name} ${got.slice(0, 40)}`);
    field(name).value = before;
    return false;
  };
  if (take("machine")) pickMachine();
  take("model");
  pickModel();
  for (const name of ["format", "kv", "bandwidth", "compute", "memory", "depth", "batch", "backend"]) take(name);
  return unknown;
}

function update(unknown = []) {
  const [state, wrong] = read();
  for (const name of Object.keys(NUMBERS)) {
    const problem = document.getElementById(`y-${name}-problem`);
    problem.textContent = wrong[name] || "";
    problem.hidden = !wrong[name];
    field(name).setAttribute("aria-invalid", String(Boolean(wrong[name])));
  }
  if (Object.keys(wrong).length) {
    SAID.textContent = "The numbers below are still those of the last setting that was whole.";
    return;
  }
  SAID.textContent = [...unknown.map(u => `This build does not know ${u}.`), print(state)].join(" ");
  putAddress(address(state));
}

if (form) {
  const filling = fill(), idle = window.requestIdleCallback ?? (work => setTimeout(work, 100));
  const ready = () => { for (const _ of filling); };
  const some = () => { if (!filling.next().done) idle(some); };
  if (location.search) {
    ready();
    update(fromAddress());
  } else {  // the page shows the example, as the build computed it; its lists are filled while nothing else is to do, or for who takes them
    idle(some);
    for (const event of ["pointerdown", "focusin"]) form.addEventListener(event, ready);
  }
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", event => {
    if (event.target.name === "machine") pickMachine();
    if (event.target.name === "model") pickModel();
    update();
  });
}
