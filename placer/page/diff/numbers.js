// Numbers for people. Every number of the difference is shown by `number`, which takes
// it from the one object by its path (RFC 6901) and keeps the exact value on the element.

function unpack(value, texts) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item) => unpack(item, texts));
  if (value.packed !== true) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unpack(item, texts)]));
  }
  for (const key of value.names) value.columns[key] = value.columns[key].map((place) => texts[place]);
  const columns = Object.entries(value.columns);
  return columns[0][1].map((_, i) => Object.fromEntries(columns.map(([key, items]) => [key, items[i]])));
}

function readData() {
  const { value, texts } = JSON.parse(document.getElementById("data").textContent);
  return unpack(value, texts);
}

const data = readData();

function at(path) {
  let value = data.diff;
  for (const key of path) value = value[key];
  return value;
}

function pointer(path) {
  return path.map((key) => "/" + String(key).replace(/~/g, "~0").replace(/\//g, "~1")).join("");
}

function short(value) {
  const text = Number(value.toPrecision(4)).toString();
  return text.includes("e") ? value.toFixed(0) : text;
}

function scaled(value, units) {
  if (value === 0) return "0 " + units[units.length - 1][1];
  for (const [factor, unit] of units) {
    if (Math.abs(value) >= factor * 0.99995) return short(value / factor) + " " + unit;
  }
  const [factor, unit] = units[units.length - 1];
  return short(value / factor) + " " + unit;
}

const FORMATS = {
  seconds: (value) => (value ? scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]) : "0 s"),
  bytes: (value) => scaled(value, [[1e15, "PB"], [1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]),
  count: (value) => value.toLocaleString("en-US", { maximumFractionDigits: 6 }),
  plain: (value) => String(value),
};

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined && text !== "") made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function number(path, format) {
  const value = at(path);
  return element("data", FORMATS[format](value), {
    value: String(value),
    title: String(value),
    "data-path": pointer(path),
    "data-format": format,
  });
}

// The change of a number; empty when there is none or nothing to compare with.
function change(oldValue, newValue, absolute = false) {
  // Sums taken in another order differ by less.
  if (Math.abs(newValue - oldValue) <= 1e-9 * Math.max(Math.abs(oldValue), Math.abs(newValue))) return "";
  const sign = newValue > oldValue ? "+" : "\u2212";
  const size = Math.abs(newValue - oldValue);
  if (absolute) return sign + FORMATS.count(size);
  return oldValue ? sign + ((100 * size) / Math.abs(oldValue)).toFixed(2) + " %" : "new";
}
