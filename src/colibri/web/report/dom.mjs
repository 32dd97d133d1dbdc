// Elements, made of text and never of markup; and texts of strangers, shown so that they cannot deceive.

export const $ = (id) => document.getElementById(id);

/** el("p", {class: "soft"}, "text", child): strings become text nodes; `onclick` and the like listen. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for a picture. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

export const button = (text, onclick, attributes = {}) =>
  el("button", { type: "button", onclick, ...attributes }, text);

const WHILE = 2_000; // ms for which a button says that it has copied

/** A hash or the like, with a button that copies it; `name` tells those who cannot see it what it is. */
export function copyable(text, name) {
  const code = el("code", {}, text);
  const copier = button("copy", async () => {
    const done = await copy(text, code);
    copier.textContent = done;
    $("spoken").textContent = `${name}: ${done}`;
    setTimeout(() => (copier.textContent = "copy"), WHILE);
  }, { class: "copy", "aria-label": `copy ${name}` });
  return el("span", { class: "copyable" }, code, " ", copier);
}

/** Into the clipboard; where a browser does not let us, it is at least selected. */
async function copy(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    return "copied";
  } catch {
    getSelection().selectAllChildren(node);
    return document.execCommand("copy") ? "copied" : "selected";
  }
}

// What moves the cursor, turns the direction of reading or is not seen at all; line breaks and tabs stay.
// No pattern repeats without bound: long texts exhaust its stack.
const HIDDEN = /((?:(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]){1,32})/u;
const codePoints = (text) => [...text].map((character) => {
  const digits = character.codePointAt(0).toString(16).toUpperCase();
  return `U+${digits.padStart(4, "0")}`;
}).join(" ");

/** A stored text in one element: it keeps to its own direction, and what is invisible is written out. */
export function stored(text, tag = "span") {
  const node = el(tag, { class: "stored", dir: "auto" });
  text.split(HIDDEN).forEach((part, at) => {
    if (at % 2 === 0) node.append(part);
    else node.append(el("span", { class: "invisible", title: "invisible characters" }, codePoints(part)));
  });
  return node;
}

/** Its beginning, on one line; never half a character. */
export function cut(text, most) {
  const line = text.slice(0, most + 1).replace(/[^\S\ufeff]/g, " "); // which JavaScript calls a blank
  return line.length > most ? `${line.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…` : line;
}

/** A stored text as a string, for places that take no elements: a label, a picture. */
export function plain(text, most = 300) {
  return cut(cut(text, most).replace(new RegExp(HIDDEN, "gu"), codePoints), most);
}

const FOLD = { characters: 1_200, lines: 16 };

/** A stored text of any length: a long one begins folded. */
export function passage(text, className, fold = FOLD) {
  const node = el("div", { class: className }, stored(text, "div"));
  const short = beginning(text, fold);
  if (short.length === text.length) return node;
  const all = `${text.length.toLocaleString("en")} characters`;
  const more = button(`Show all ${all}`, () => {
    node.replaceChildren(stored(text, "div"));
    node.tabIndex = -1;
    node.focus();
  });
  node.replaceChildren(stored(`${short}…`, "div"), more, el("p", { class: "on-paper" }, `Cut here: it has ${all}.`));
  return node;
}

function beginning(text, { characters, lines }) {
  const cut = text.slice(0, characters).split("\n").slice(0, lines).join("\n");
  // Never half a character at its end; and nobody is asked to unfold a few words.
  return text.length - cut.length < 200 ? text : cut.replace(/[\ud800-\udbff]$/, "");
}
