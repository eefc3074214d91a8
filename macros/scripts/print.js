// Numbers as the build prints them: halves away from zero on the shortest decimal. Intl rounds that decimal; toFixed rounds the binary one.
const rounding = {};  // to make a formatter costs more than to use it
const decimal = (n, digits) => (rounding[digits] ??= new Intl.NumberFormat("en", {minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "negative"})).format(n).replace("-", "−");

function optgroup([group, entries], value) {
  const made = entries.map(([id, words]) => new Option(words, id, id === value, id === value));
  if (!group) return made;
  const box = document.createElement("optgroup");
  box.label = group;
  box.append(...made);
  return [box];
}

const options = (select, groups, value) => select.replaceChildren(...groups.flatMap(group => optgroup(group, value)));

function putAddress(query) {
  const text = query.toString();
  try {
    history.replaceState(history.state, "", location.pathname + (text ? `?${text}` : "") + location.hash);
  } catch { /* some viewers of local files allow no address */ }
}
