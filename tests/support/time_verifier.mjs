// Whether verify.mjs takes longer than its files grow: [[file, …], …] on stdin, each list of one kind and of
// growing size, in base64; what is too slow about each, or null, on stdout. The judge is that of time_patterns.mjs.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

globalThis.crypto ??= (await import("node:crypto")).webcrypto; // Node 18 has it there only

const { verify, show } = await import(pathToFileURL(process.argv[2]));
const [SMALL, SURE, GROWTH, LONG, WARM] = [20, 2, 9, 2000, 30]; // ms, ms, times, ms, turns
const PER_KIB = 0.25; // ms: what takes less is linear, however it grew; collecting garbage comes in bursts

/** All that a reader of the file sees: the verdict, and every text of it made visible. */
async function read(file) {
  const verdict = (await verify(file)).toJSON();
  for (const finding of verdict.findings) show(finding.detail ?? "");
  show(Buffer.from(file).toString());
}

async function takes(file, enough) {
  let [best, spent] = [Infinity, 0];
  for (let turn = 0; turn < 3 && best >= enough && spent < LONG; turn += 1) {
    const start = process.cpuUsage();
    await read(file);
    const took = process.cpuUsage(start).user / 1000;
    [best, spent] = [Math.min(best, took), spent + took];
  }
  return best;
}

async function slow(files) {
  const [long, short, ...small] = files.map((text) => new Uint8Array(Buffer.from(text, "base64"))).reverse();
  for (const file of small.reverse()) {
    const took = await takes(file, SMALL);
    if (took > SMALL) return `${file.length} bytes took ${took} ms`;
  }
  const before = await takes(short, SURE);
  if (before < SURE) return null;
  const most = Math.max(GROWTH * before, (PER_KIB * long.length) / 1024);
  const after = await takes(long, most);
  return after < most ? null : `${short.length} bytes took ${before} ms, ${long.length} took ${after} ms`;
}

const given = JSON.parse(readFileSync(0, "utf8"));
for (let turn = 0; turn < WARM; turn += 1) await read(new Uint8Array(Buffer.from(given[0][0], "base64")));
const answers = [];
for (const files of given) answers.push(await slow(files));
writeFileSync(1, JSON.stringify(answers));
