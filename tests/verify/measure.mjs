// The JavaScript verifier as a command: its exit code and the most memory it took, in KiB, on stderr.

import { createReadStream, readFileSync } from "node:fs";

globalThis.crypto ??= (await import("node:crypto")).webcrypto; // Node 18 has it there only

const { verify } = await import(new URL("../../src/colibri/web/verify.mjs", import.meta.url));
const [, , path, root = null] = process.argv;
const verdict = await verify(() => createReadStream(path, { highWaterMark: 1 << 20 }), { root });
const code = { good: 0, bad: 1, "cannot tell": 2 }[verdict.verdict];
console.log(JSON.stringify(verdict));
const [, memory] = /VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"));
console.error(code, memory);
process.exitCode = code;
