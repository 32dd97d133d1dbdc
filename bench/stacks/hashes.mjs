// Node doing what the bare loop of check.py does: the same rows, the same two hashes, nothing else.
// It runs from a copy beside better-sqlite3: node hashes.mjs DATABASE SQL

import Database from "better-sqlite3";
import { createHash } from "node:crypto";

const [path, sql] = process.argv.slice(2);
const commitment = Buffer.from("colibri/payload/v1\n");
const zero = Buffer.from([0]);

const db = new Database(path, { readonly: true });
const start = performance.now();
let count = 0;
for (const row of db.prepare(sql).raw().iterate()) {
    createHash("sha256").update(commitment).update(row[10]).update(row[11]).digest("hex");
    const leaf = createHash("sha256").update(zero).update(row[1]).digest();
    if (!leaf.equals(row[2])) throw new Error(`record ${row[0]} is not what was hashed`);
    count += 1;
}
const seconds = (performance.now() - start) / 1000;
console.log(JSON.stringify([count, seconds, process.resourceUsage().maxRSS / 1024]));
