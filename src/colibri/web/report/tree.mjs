// The seal as a picture: the Merkle tree (docs/formats.md §4) lying on its side, root at the left, one
// line for each thought or for a part of the tree that is folded. A small tree is shown whole; of a
// large one the part that the reader looks at, so that 10,000 thoughts stay readable.

import { hex, leafHash, nodeHash, unhex } from "../verify.mjs";
import { $, button, el, plain, svg } from "./dom.mjs";
import { decode } from "./model.mjs";
import { count, shortHash } from "./words.mjs";

const WHOLE = 32; // a tree of this size is never folded
const DEEP = 4; // how many levels are open below what the reader looks at
const FEW = 8;

// The tree. A part of it is {first, last}: the leaves from `first` to before `last`.

const leaf = (index) => ({ first: index, last: index + 1 });
const key = ({ first, last }) => `${first}-${last}`;
const split = (size) => 2 ** Math.floor(Math.log2(size - 1)); // the largest power of two below it

/** The two halves of a part. */
function halves({ first, last }) {
  const middle = first + split(last - first);
  return [{ first, last: middle }, { first: middle, last }];
}

/** From a leaf upwards: each neighbour, the side it is on, and what the two make together. */
export function pathOf(size, index) {
  const steps = [];
  let makes = { first: 0, last: size };
  while (makes.last - makes.first > 1) {
    const [left, right] = halves(makes);
    const isLeft = index < left.last;
    steps.unshift({ makes, sibling: isLeft ? right : left, side: isLeft ? "right" : "left" });
    makes = isLeft ? left : right;
  }
  return steps;
}

/** Part → its hash, as far as the thoughts and their proofs tell; a proof has the siblings' hashes. */
export function hashParts(size, thoughts) {
  const hashes = new Map();
  thoughts.forEach(({ index, record }) => {
    hashes.set(key(leaf(index)), leafHash(decode(record.header)));
  });
  for (const { index, path } of thoughts) {
    for (const [at, { sibling }] of path === null ? [] : pathOf(size, index).entries()) {
      if (!hashes.has(key(sibling))) hashes.set(key(sibling), unhex(path[at])); // ours go first
    }
  }
  combine({ first: 0, last: size }, hashes);
  return hashes;
}

function combine(part, hashes) {
  if (hashes.has(key(part))) return hashes.get(key(part));
  if (part.last - part.first === 1) return null;
  const [left, right] = halves(part).map((half) => combine(half, hashes));
  if (left === null || right === null) return null;
  const hash = nodeHash(left, right);
  hashes.set(key(part), hash);
  return hash;
}

/** The smallest part around a leaf that has a few leaves. */
export function around(size, index) {
  const parts = pathOf(size, index).map(({ makes }) => makes);
  return parts.findLast(({ first, last }) => last - first <= FEW) ?? leaf(index);
}

/** What is shown of a tree when the reader looks at `focus`: a node without children is one line. */
export function outline(size, focus, isKnown = () => true) {
  const within = (a, b) => b.first <= a.first && a.last <= b.last;
  const grow = (part, depth, below) => {
    const node = { ...part, depth, children: [] };
    const length = part.last - part.first;
    const parts = length === 1 ? [] : halves(part);
    const isWay = within(focus, part) && length > focus.last - focus.first;
    const isOpen = size <= WHOLE || isWay || (within(part, focus) && below < DEEP);
    if (isOpen && parts.every(isKnown)) {
      node.children = parts.map((half) => grow(half, depth + 1, isWay ? 0 : below + 1));
    }
    return node;
  };
  return grow({ first: 0, last: size }, 0, 0);
}

const nodesOf = (node) => [node, ...node.children.flatMap(nodesOf)];

// On the page.

const LINE = 34; // px, the height of a line: as in the style
const ROOM = 190; // px, the most that the branches take

/** A sealed session on the page: which part the reader looks at, and which thought is chosen. */
export class Tree {
  /** `reveal(seq)` leads to a record in the timeline. */
  constructor({ thoughts, seal }, reveal) {
    this.seal = seal.body;
    this.whole = { first: 0, last: seal.body.count };
    this.size = seal.body.count;
    this.proven = thoughts;
    this.thoughts = new Map(thoughts.map((thought) => [thought.index, thought.record]));
    this.places = new Map(thoughts.map((thought) => [thought.record.seq, thought.index]));
    this.reveal = reveal;
    this.focus = this.whole;
    this.chosen = null;
    this.hashes = null;
    this.isProven = false; // until a verdict says so
    this.altered = new Set(); // thoughts whose text is not the one that their hash stands for
  }

  /** Take note of a verdict: hashes can fit where the texts next to them do not. */
  doubt({ verdict, findings }) {
    this.isProven = verdict === "good";
    this.altered = new Set(findings.filter(({ code }) => code === "altered-payload").map(({ seq }) => seq));
  }

  /** Draw it; with a thought's seq, show how the seal covers that. */
  async show(seq = null) {
    this.hashes ??= hashParts(this.size, this.proven);
    this.root = hex(this.hashes.get(key(this.whole)) ?? []);
    const others = this.proven.filter(({ record }) => this.altered.has(record.seq)).length;
    const but = `But of ${others} of them the text shown here is not the one that was hashed.`;
    $("tree-root").replaceChildren(
      `The root of the hashes of ${count(this.size, "thought")}, computed here, is `, el("code", {}, `${this.size}:${this.root}`),
      this.root === this.seal.root ? ", the same as in the seal. " : ", NOT the same as in the seal. ",
      others > 0 ? el("b", { class: "bad" }, but) : "",
    );
    $("tree-whole").onclick = () => this.look(this.whole);
    this.draw();
    this.showProof();
    if (seq !== null) this.choose(seq);
  }

  choose(seq) {
    const index = this.places.get(seq);
    if (this.size > WHOLE) this.focus = around(this.size, index);
    this.mark(index);
  }

  look(part) {
    this.focus = part;
    this.draw();
    this.focusOn(part.first);
  }

  mark(index) {
    this.chosen = index;
    this.draw();
    this.showProof();
    this.focusOn(index);
  }

  focusOn(first) {
    $("tree").querySelector(`[data-first="${first}"]`)?.focus();
  }

  draw() {
    const tree = outline(this.size, this.focus, (part) => this.hashes.has(key(part)));
    const path = this.chosen === null ? [] : pathOf(this.size, this.chosen);
    const marks = new Map();
    for (const { makes, sibling } of path) marks.set(key(makes), "path").set(key(sibling), "sibling");
    if (this.chosen !== null) marks.set(key(leaf(this.chosen)), "path");
    const lines = nodesOf(tree).filter(({ children }) => children.length === 0);
    $("tree").replaceChildren(
      picture(tree, lines, marks, this.label()),
      el("ol", { class: "tree-lines", "aria-label": "The tree’s ends, from first to last" },
        ...lines.map((node) => this.line(node, marks.get(key(node)) ?? ""))),
    );
    $("tree-whole").hidden = key(this.focus) === key(this.whole);
  }

  label() {
    const tree = `A tree that joins ${count(this.size, "thought")} to one root`;
    return this.chosen === null ? tree : `${tree}; the way from ${number("thought", this.chosen)} is marked`;
  }

  line(node, mark) {
    const { first, last } = node;
    const record = this.thoughts.get(first);
    const isLeaf = last - first === 1;
    const hash = el("code", { "aria-hidden": true }, shortHash(hex(this.hashes.get(key(node)))));
    const attributes = { class: "tree-line", "data-mark": mark, "data-first": first };
    const which = isLeaf ? number("thought", first) : `${count(last - first, "thought")}, ${numbers(node)}`;
    let text = el("span", { class: "tree-line soft", "data-mark": mark }, `${which}: not in this file`);
    if (isLeaf && record !== undefined) {
      const pressed = { "aria-pressed": String(first === this.chosen) };
      const isAltered = this.altered.has(record.seq);
      const name = isAltered ? `R-${record.seq}: the text shown does not belong to this hash` : thoughtText(record);
      text = button(name, () => this.mark(first), { ...attributes, ...pressed, "data-bad": isAltered });
    } else if (halves(node).every((half) => this.hashes.has(key(half)))) {
      text = button(`▸ ${which}`, () => this.look(node), { ...attributes, "aria-label": `unfold ${which}` });
    }
    return el("li", {}, text, hash);
  }

  showProof() {
    $("proof").hidden = this.chosen === null;
    if (this.chosen === null) return;
    const { seq } = this.thoughts.get(this.chosen);
    const code = (part) => el("code", {}, hex(this.hashes.get(key(part))));
    const steps = pathOf(this.size, this.chosen).map(({ sibling, side, makes }) => {
      const isLeaf = sibling.last - sibling.first === 1;
      const what = isLeaf ? number("thought", sibling.first) : `thoughts ${numbers(sibling)}`;
      return el("li", {}, `with its ${side} neighbour, ${what}, `, code(sibling), " it makes ", code(makes));
    });
    const [className, end] = this.proofEnd(seq);
    $("proof").replaceChildren(
      el("h3", {}, `How the seal covers ${number("thought", this.chosen)}`),
      el("ol", {}, el("li", {}, `Record ${seq} has the hash `, code(leaf(this.chosen))), ...steps),
      el("p", { class: className }, end),
      button("Read it in the timeline", () => this.reveal(seq)),
    );
  }

  /** What the way to the root shows of a thought, and how that looks. */
  proofEnd(seq) {
    if (this.root !== this.seal.root) {
      return ["bad", "This is not the root in the seal: nothing proves that the thought was sealed."];
    }
    if (this.altered.has(seq)) {
      return ["bad", "This is the root in the seal, but the text shown here does not belong to the hash of this " +
        "record: a different text was sealed, which this file does not hold."];
    }
    if (!this.isProven) {
      return ["unclear", "This is the root in the seal, but this report as a whole is not proven: see its verdict."];
    }
    return ["good", "This is the root in the seal: the thought is among those that were sealed, at this place."];
  }
}

/** Whether a seal is here, and with it all its thoughts or their proofs. */
export function canBeDrawn({ thoughts, seal }) {
  const isWhole = thoughts.length === seal?.body?.count;
  return seal?.body && thoughts.length > 0 && (isWhole || thoughts.every(({ path }) => path !== null));
}

// Thoughts are counted from 1 where people read it.
const number = (name, index) => `${name} ${(index + 1).toLocaleString("en")}`;
const numbers = ({ first, last }) => `${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")}`;

function thoughtText({ seq, body }) {
  return body === null ? `R-${seq} erased` : `R-${seq} ${body.type}: ${plain(body.content, 120)}`;
}

/** The branches, next to the lines that they lead to. */
function picture(tree, lines, marks, label) {
  const nodes = nodesOf(tree);
  const deepest = Math.max(1, ...nodes.map(({ depth }) => depth));
  const most = matchMedia("(max-width: 40rem)").matches ? 18 : 36; // on a phone the words need the room
  const step = Math.min(most, (ROOM - 24) / deepest);
  const [width, height] = [Math.round(deepest * step + 24), lines.length * LINE];
  lines.forEach((node, at) => (node.y = at * LINE + LINE / 2));
  for (const node of nodes.toReversed()) { // children come after their parent
    if (node.children.length > 0) node.y = (node.children[0].y + node.children[1].y) / 2;
    node.x = 8 + node.depth * step;
  }
  const mark = (node) => marks.get(key(node)) ?? "";
  const branches = nodes.flatMap(({ x, y, children }) =>
    children.map((child) => way(`M${x} ${y}V${child.y}H${child.x}`, mark(child), "")));
  const leads = lines.map((node) => way(`M${node.x} ${node.y}H${width}`, mark(node), "lead"));
  const isPath = (attributes) => attributes["data-mark"] === "path"; // is drawn last, on top
  const ways = [...leads, ...branches].sort((a, b) => isPath(a) - isPath(b));
  const frame = { width, height, viewBox: `0 0 ${width} ${height}`, class: "tree-picture" };
  return svg("svg", { ...frame, role: "img", "aria-label": label },
    ...ways.map((attributes) => svg("path", attributes)),
    ...nodes.map((node) => dot(node, mark(node))));
}

const way = (d, mark, otherwise) => ({ d, "data-mark": mark === "path" ? "path" : otherwise });
const dot = ({ x, y }, mark) => svg("circle", { cx: x, cy: y, r: mark === "" ? 3 : 5, "data-mark": mark });
