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

// What moves the cursor, turns the direction of reading or is not seen at all; line breaks and tabs stay.
// No pattern repeats without bound: long texts exhaust its stack.
const HIDDEN = /([^\P{C}\n\t]{1,32}|[\u2028\u2029])/u;
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
  const line = text.slice(0, most + 1).replace(/\s/g, " ");
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
  const more = button(`Show all ${text.length.toLocaleString("en")} characters`, () => {
    node.replaceChildren(stored(text, "div"));
    node.tabIndex = -1;
    node.focus();
  });
  node.replaceChildren(stored(`${short}…`, "div"), more);
  return node;
}

function beginning(text, { characters, lines }) {
  const cut = text.slice(0, characters).split("\n").slice(0, lines).join("\n");
  // Never half a character at its end; and nobody is asked to unfold a few words.
  return text.length - cut.length < 200 ? text : cut.replace(/[\ud800-\udbff]$/, "");
}
