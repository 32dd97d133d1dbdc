// Runs the JavaScript verifier on a batch: {"job": …} as JSON on stdin, the answers as JSON on stdout.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

globalThis.crypto ??= (await import("node:crypto")).webcrypto; // Node 18 has it there only

const [, , modulePath] = process.argv;
const module = await import(pathToFileURL(modulePath));
const { verify, treeRoot, rootOfProof, hex, unhex, show, CODES, NOTES } = module;

const jobs = {
  // [{path | base64, root, head}] → verdicts
  async verify(items) {
    const answers = [];
    for (const { path, base64, root = null, head = null } of items) {
      const bytes = path ? readFileSync(path) : Buffer.from(base64, "base64");
      answers.push((await verify(new Uint8Array(bytes), { root, head })).toJSON());
    }
    return answers;
  },
  // [[leaf, …]] → roots
  async roots(items) {
    const answers = [];
    for (const leaves of items) answers.push(hex(await treeRoot(leaves.map(unhex))));
    return answers;
  },
  // [[leaf, index, size, [step, …]]] → root or null
  async proofs(items) {
    const answers = [];
    for (const [leaf, index, size, path] of items) {
      const root = await rootOfProof(unhex(leaf), index, size, path.map(unhex));
      answers.push(root === null ? null : hex(root));
    }
    return answers;
  },
  async show(items) {
    return items.map(show);
  },
  async words() {
    return [{ CODES, NOTES }];
  },
};

const { job, items } = JSON.parse(readFileSync(0, "utf8"));
writeFileSync(1, JSON.stringify(await jobs[job](items)));
