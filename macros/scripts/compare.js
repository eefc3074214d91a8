// (A filter is not called q: the theme takes that for a search.)
// "Compare": the table filtered, sorted and turned over, and two of its rows' subjects set against each other. What the page
// shows lives in its address. The rows below are filled into the build's own empty row.
const form = document.getElementById("compare-form"), pairForm = document.getElementById("pair-form");
const NAMES = DATA.names, COUNT = DATA.mean.length;
const words = i => (DATA.machines[DATA.machine[i]].join(" ") + " " + NAMES.machine[DATA.machine[i]]).toLowerCase();
const KEYS = {share: i => DATA.share[i], rate: i => DATA.mean[i], ratio: i => DATA.ratio[i]};

function line(i) {
  const measured = new compare_Measured(DATA.mean[i], DATA.sigma[i] ?? NaN, DATA.n[i]);
  return new side_by_side_Line(NAMES.machine[DATA.machine[i]], "", NAMES.model[DATA.model[i]], Boolean(DATA.synthetic[i]), NAMES.test[DATA.test[i]],
    NAMES.backend[DATA.backend[i]], measured, DATA.share[i], DATA.ratio[i], DATA.inside[i] === null ? null : Boolean(DATA.inside[i]));
}

function cells(row, texts) {
  for (const cell of row.querySelectorAll("[data-c]")) if (cell.dataset.c in texts) cell.textContent = texts[cell.dataset.c];
  return row;
}

const spare = id => document.getElementById(id).content.firstElementChild.cloneNode(true);

function tableRow(i) {
  const x = line(i), row = spare("compare-row");
  cells(row, {
    machine: DATA.machines[DATA.machine[i]][0], backend: x.backend, model: x.model, synthetic: x.synthetic ? DATA.synthetic_ : "", test: x.test,
    rate: compare_page_rate_text(x.measured), share: compare_page_share_text(x.share), ratio: compare_page_ratio_text(x.ratio),
    outside: x.inside === false ? DATA.outside_ : "",
  });
  row.querySelector("[data-c=machine]").href = `${DATA.here}${x.machine}/${location.protocol === "file:" ? "index.html" : ""}`;  // a folder shows no page of its own
  for (const [name, known, key, at] of [["bar", x.share, "d", n => `M0 5H${compare_page_bar(n).toFixed(1)}`], ["dot", x.ratio, "cx", n => compare_page_dot(n).toFixed(1)]]) {
    const mark = row.querySelector(`[data-c=${name}]`);
    mark.parentNode.toggleAttribute("hidden", !known);
    if (known) mark.setAttribute(key, at(known));
  }
  return row;
}

const value = name => form.elements.namedItem(name).value;

function chosen() {
  const asked = value("find").trim().toLowerCase().split(/\s+/).filter(Boolean), test = NAMES.test.indexOf(value("test")), model = NAMES.model.indexOf(value("model"));
  const kept = [...Array(COUNT).keys()].filter(i => (test < 0 || DATA.test[i] === test) && (model < 0 || DATA.model[i] === model) && asked.every(w => words(i).includes(w)));
  const sort = value("sort"), sign = sort.startsWith("-") ? 1 : -1, key = KEYS[sort.replace("-", "")];
  if (!key) return kept.sort((a, b) => DATA.machines[DATA.machine[a]][0].localeCompare(DATA.machines[DATA.machine[b]][0], "en") || a - b);
  // The build's order is by share within decode, then within prefill; rows without a number go last either way.
  if (sort === DATA.sorts[0]) return kept;
  return kept.sort((a, b) => (key(a) === null) - (key(b) === null) || sign * (key(a) - key(b)) || a - b);
}

// Lines by what they are of: machine, model, backend.
const subjects = new Map();
for (let i = 0; i < COUNT; i += 1) {
  const subject = line(i).subject;
  subjects.set(subject, [...(subjects.get(subject) || []), i]);
}

let page = 0;

function show() {
  const kept = chosen(), pages = Math.max(1, Math.ceil(kept.length / DATA.rows));
  page = Math.min(Math.max(page, 0), pages - 1);
  const from = page * DATA.rows, mine = kept.slice(from, from + DATA.rows);
  document.querySelector("#" + form.dataset.table + " tbody").replaceChildren(...mine.map(tableRow));
  document.getElementById("compare-said").textContent = mine.length ? `Rows ${decimal(from + 1, 0)}–${decimal(from + mine.length, 0)} of ${decimal(kept.length, 0)}` : "No row is like that.";
  document.getElementById("compare-back").disabled = page === 0;
  document.getElementById("compare-on").disabled = page === pages - 1;
  remember();
}

function remember() {
  const query = new URLSearchParams();
  for (const name of ["find", "test", "model"]) if (value(name)) query.set(name, value(name));
  if (value("sort") !== DATA.sorts[0]) query.set("sort", value("sort"));
  if (page) query.set("page", page + 1);
  if (pairForm) ["a", "b"].forEach((name, i) => { if (pairForm.elements.namedItem(name).value !== DATA.pair[i]) query.set(name, pairForm.elements.namedItem(name).value); });
  putAddress(query);
}

const named = x => compare_page_subject_words(DATA.machines[NAMES.machine.indexOf(x.machine)][0], x);

function showPair() {
  const [a, b] = ["a", "b"].map(name => pairForm.elements.namedItem(name).value);
  const mine = subject => subjects.get(subject).map(line);
  const both = side_by_side_pairs(mine(a), mine(b)), body = document.querySelector("#" + pairForm.dataset.table + " tbody");
  body.replaceChildren(...both.map(([x, y]) => cells(spare("pair-row"), {
    test: x.test, a: compare_page_rate_text(x.measured), b: compare_page_rate_text(y.measured), roofs: compare_page_roofs_text(x, y),
    ratio: `${compare_page_rate_text(compare_ratio(y.measured, x.measured))}×`, words: side_by_side_difference(x.measured, y.measured),
  })));
  if (!both.length) body.append(cells(spare("pair-row"), {test: "No test in common"}));
  for (const [name, subject] of [["a", a], ["b", b]]) document.querySelector(`[data-pair=${name}]`).textContent = named(mine(subject)[0]);
  remember();
}

// Names that a link carries and this build does not have keep what was there.
function take(box, name, query) {
  const field = box.elements.namedItem(name), before = field.value;
  if (!query.has(name)) return;
  field.value = query.get(name);
  if (field.tagName === "SELECT" && field.value !== query.get(name)) field.value = before;
}

if (form && COUNT) {
  const query = new URLSearchParams(location.search);
  for (const name of ["find", "test", "model", "sort"]) take(form, name, query);
  page = (Number(query.get("page")) || 1) - 1;
  if (pairForm) {
    const names = [...subjects].map(([subject, [i]]) => [subject, named(line(i))]).sort((a, b) => a[1].localeCompare(b[1], "en"));
    ["a", "b"].forEach((name, i) => { options(pairForm.elements.namedItem(name), [["", names]], DATA.pair[i]); take(pairForm, name, query); });
    pairForm.addEventListener("input", showPair);
    pairForm.addEventListener("submit", event => event.preventDefault());
    if (query.has("a") || query.has("b")) showPair();
  }
  show();
  form.addEventListener("input", () => { page = 0; show(); });
  form.addEventListener("submit", event => event.preventDefault());
  document.getElementById("compare-back").addEventListener("click", () => { page -= 1; show(); });
  document.getElementById("compare-on").addEventListener("click", () => { page += 1; show(); });
}
