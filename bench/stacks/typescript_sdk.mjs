// The equal tool on the TypeScript SDK with zod and better-sqlite3; ledger.py says what it does.
// It runs from a copy beside its packages, so that Node finds them.

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import Database from "better-sqlite3";
import { createHash } from "node:crypto";
import { z } from "zod";

const oneSync = process.env.BENCH_SYNCS === "1";
const db = new Database("stack.db", { timeout: 30_000 });
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
db.exec(`
    CREATE TABLE IF NOT EXISTS ledger (
        seq  INTEGER PRIMARY KEY,
        body TEXT NOT NULL,
        prev BLOB NOT NULL UNIQUE,
        leaf BLOB NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE IF NOT EXISTS tasks (
        id INTEGER PRIMARY KEY, title TEXT NOT NULL, at INTEGER NOT NULL
    ) STRICT;
`);
const head = db.prepare("SELECT seq, leaf FROM ledger ORDER BY seq DESC LIMIT 1");
const append = db.prepare("INSERT INTO ledger (seq, body, prev, leaf) VALUES (?, ?, ?, ?)");
const insert = db.prepare("INSERT INTO tasks (title, at) VALUES (?, ?)");
const begin = db.prepare("BEGIN IMMEDIATE");
const commit = db.prepare("COMMIT");

function record(value) {
    const last = head.get() ?? { seq: 0, leaf: Buffer.alloc(32) };
    const body = JSON.stringify(value);
    const leaf = createHash("sha256").update(last.leaf).update(body).digest();
    append.run(last.seq + 1, body, last.leaf, leaf);
    return { seq: last.seq + 1, leaf };
}

function create(title) {
    if (oneSync) db.pragma("synchronous = NORMAL");
    begin.run();
    const enter = record({ kind: "enter", tool: "task_create", title });
    commit.run();
    if (oneSync) db.pragma("synchronous = FULL");
    begin.run();
    const task = Number(insert.run(title, Date.now()).lastInsertRowid);
    const exit = record({ kind: "exit", enter: enter.seq, task });
    commit.run();
    return { id: `T-${task}`, title, seq: exit.seq, head: exit.leaf.toString("hex") };
}

const server = new McpServer({ name: "stack", version: "1" });
server.registerTool(
    "task_create",
    { description: "Create a task.", inputSchema: { title: z.string().min(1).max(256) } },
    async ({ title }) => ({ content: [{ type: "text", text: JSON.stringify(create(title)) }] }),
);
await server.connect(new StdioServerTransport());
