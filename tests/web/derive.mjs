// Runs the pure parts of the report under Node: {"job": …, "items": […]} as JSON on stdin, the answers on
// stdout.

import { readFileSync, writeFileSync } from "node:fs";

globalThis.crypto ??= (await import("node:crypto")).webcrypto; // Node 18 has it there only

const WEB = new URL("../../src/colibri/web/", import.meta.url);
const load = (name) => import(new URL(name, WEB));
const { hex } = await load("verify.mjs");
const model = await load("report/model.mjs");
const tree = await load("report/tree.mjs");
const tasks = await load("report/tasks.mjs");
const words = await load("report/words.mjs");
const verdict = await load("report/verdict.mjs");
const people = await load("report/people.mjs");
const dom = await load("report/dom.mjs");

const derive = (path) => model.derive(model.readBundle(readFileSync(path, "utf8")));

const lines = (node) => (node.children.length === 0 ? [[node.first, node.last]] : node.children.flatMap(lines));

const jobs = {
  // path → the model, as far as it is data
  derive(path) {
    const { entries, own, openers, ...rest } = derive(path);
    return {
      ...rest,
      agents: people.agentsOf(own, rest.tasks, openers),
      entries: entries.map(({ records, changes, erasures, ...entry }) => ({
        ...entry,
        records: records.map(({ seq }) => seq),
        changes: changes.map(({ kind }) => kind),
        erased: [...(erasures ?? new Map()).keys()],
        title: ["call", "refused", "open"].includes(entry.type) ? words.callTitle(entry) : null,
        reason: entry.type === "refused" ? words.refusalReason(entry) : null,
      })),
    };
  },
  // [path, words] → the seqs of the entries that have them
  search: ([path, word]) =>
    derive(path).entries.filter((entry) => model.searchText(entry).includes(word)).map(({ seq }) => seq),
  // [size, index] → the hashes next to the path from a leaf to the root
  path: ([size, index]) => tree.pathOf(size, index).map(({ sibling }) => [sibling.first, sibling.last]),
  // [size, first, last] → the lines that are shown
  outline: ([size, first, last]) => lines(tree.outline(size, { first, last })),
  around: ([size, index]) => tree.around(size, index),
  // path → session → the root that its thoughts and proofs make
  async roots(path) {
    const found = {};
    for (const session of derive(path).sessions.filter(tree.canBeDrawn)) {
      const { id, thoughts, seal } = session;
      const hashes = await tree.hashParts(seal.body.count, thoughts);
      found[id] = hex(hashes.get(`0-${seal.body.count}`) ?? []);
    }
    return found;
  },
  // {task: [what it waits for]} → [[task, [column, row]]]
  place: (given) => [...tasks.place(Object.entries(given).map(([id, depends_on]) => ({ id, depends_on })))],
  outside: (text) => verdict.parseOutside(text) ?? String(verdict.parseOutside(text)),
  plain: ([text, most]) => dom.plain(text, most),
  codes: () => [Object.keys(words.FINDINGS), Object.keys(words.NOT_CHECKED)],
  finding: (finding) => words.findingText(finding),
  // [path, {root, head}] → what it covers
  coverage: ([path, outside]) => model.coverage(derive(path), outside),
  stretches: (ranges) => words.stretches(ranges),
  span: ([first, last]) => words.span(first, last),
};

const { job, items } = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const item of items) answers.push((await jobs[job](item)) ?? null);
writeFileSync(1, JSON.stringify(answers));
