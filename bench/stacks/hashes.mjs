// Node doing what the bare loop of check.py does: the same rows, the same two hashes, nothing else.
// The header is made of the row as docs/formats.md has it.
// It runs from a copy beside better-sqlite3: node hashes.mjs DATABASE SQL

import Database from "better-sqlite3";
import { createHash } from "node:crypto";

const [path, sql] = process.argv.slice(2);
const commitment = Buffer.from("colibri/payload/v1\n");
const zero = Buffer.from([0]);

const db = new Database(path, { readonly: true });
const log = JSON.stringify(db.prepare("SELECT value FROM meta WHERE key = 'log'").pluck().get());
const quote = (text) => (text === null ? "null" : JSON.stringify(text));

function header([seq, at, kind, call, session, task, agent, payload, , , , prev]) {
    return (
        `{"agent":${quote(agent)},"at":"${at}","call":"${call}","kind":"${kind}","log":${log}` +
        `,"payload":"${payload.toString("hex")}","prev":"${prev.toString("hex")}","seq":${seq}` +
        `,"session":${quote(session)},"task":${quote(task)},"v":1}`
    );
}

const start = performance.now();
let count = 0;
for (const row of db.prepare(sql).raw().iterate()) {
    createHash("sha256").update(commitment).update(row[8]).update(row[9]).digest();
    const leaf = createHash("sha256").update(zero).update(header(row)).digest();
    if (!leaf.equals(row[10])) throw new Error(`record ${row[0]} is not what was hashed`);
    count += 1;
}
const seconds = (performance.now() - start) / 1000;
console.log(JSON.stringify([count, seconds, process.resourceUsage().maxRSS / 1024]));
