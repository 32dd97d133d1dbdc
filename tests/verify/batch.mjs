// Runs the JavaScript verifier on a batch: {"job": …} as JSON on stdin, the answers as JSON on stdout.

import { createReadStream, readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

globalThis.crypto ??= (await import("node:crypto")).webcrypto; // Node 18 has it there only

const [, , modulePath] = process.argv;
const module = await import(pathToFileURL(modulePath));
const { verify, Tree, rootOfProof, sha256, hex, unhex, show, CODES, NOTES } = module;

const jobs = {
  // [{path | base64, root, head, checkpoint}] → verdicts
  async verify(items) {
    const answers = [];
    for (const { path, base64, root = null, head = null, checkpoint = null } of items) {
      const file = path ? () => createReadStream(path) : new Uint8Array(Buffer.from(base64, "base64"));
      answers.push((await verify(file, { root, head, checkpoint })).toJSON());
    }
    return answers;
  },
  // [[leaf, …]] → roots
  async roots(items) {
    const answers = [];
    for (const leaves of items) {
      const tree = new Tree();
      for (const leaf of leaves) tree.add(unhex(leaf));
      answers.push(hex(tree.root()));
    }
    return answers;
  },
  // [[leaf, index, size, [step, …]]] → root or null
  async proofs(items) {
    const answers = [];
    for (const [leaf, index, size, path] of items) {
      const root = rootOfProof(unhex(leaf), index, size, path.map(unhex));
      answers.push(root === null ? null : hex(root));
    }
    return answers;
  },
  async hashes(items) {
    return items.map((item) => hex(sha256(unhex(item))));
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
