// One record as it is in the log: its place in the chain, its hashes, and what it says.

import { hex, leafHash } from "../verify.mjs";
import { button, copyable, el, passage, plain } from "./dom.mjs";
import { decode } from "./model.mjs";

const RAW = { characters: 20_000, lines: 400 };
const KINDS = {
  "call.enter": "a call came in",
  "call.exit": "the call ended",
  "session.open": "a session was opened",
  thought: "a thought",
  "session.seal": "a session was sealed",
  task: "a change of a task",
  "task.text": "a task’s title and description",
  erasure: "texts were erased",
  deed: "an action that the host reported",
  "deed.text": "its command and paths",
  "session.resume": "a session was resumed",
};

/** All that is known of it; `proof` is a thought's place in its seal, if there is one. */
export async function drawRecord(record, proof) {
  const { seq, kind, body } = record;
  const rows = [...await lines(record), ["In the seal", proof ? place(seq, proof) : null]];
  return el("div", { class: "record" },
    el("p", { class: "headline" }, `Record ${seq}: ${KINDS[kind] ?? "of an unknown kind"}`),
    el("dl", {}, ...rows.filter(([, value]) => value !== null).map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    body === null ? null : passage(JSON.stringify(body, null, 2), "raw", RAW));
}

async function lines({ seq, kind, at, call, session, task, agent, payload, prev, header, body }) {
  const leaf = hex(leafHash(decode(header)));
  const text = (value) => plain(String(value)); // a forged one may be anything
  const hash = (value, name) => copyable(text(value), `${name} of record ${seq}`);
  return [
    ["Kind", el("code", {}, text(kind))],
    ["Time", el("code", {}, text(at))],
    ["Call", call === null ? null : el("code", {}, text(call))],
    ["About", plain([session, task, agent].filter(Boolean).join(", ")) || null],
    ["Hash", leaf === null ? "This browser does not compute it here." : hash(leaf, "the hash")],
    ["Receipt", leaf === null || kind !== "call.exit" ? null : hash(`${seq}:${leaf}`, "the receipt")],
    ["Follows", seq === 1 ? "nothing: it is the first" : hash(prev, "the hash before that")],
    ["Content", hash(payload, "the hash of the content")],
    ["", body === null ? "The content itself is not in this file." : null],
  ];
}

function place(seq, { number, size, isAltered, show }) {
  const label = { class: "link", "aria-label": `show record ${seq} in the seal` };
  const but = isAltered ? ", but the text below is a different one" : "";
  return el("span", {}, `thought ${number} of ${size}${but} `, button("show the way to the root", show, label));
}
