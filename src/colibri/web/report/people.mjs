// Who did it: what each agent did, counted from the records as store/agents.py counts it; and apart from
// that, whose work came before or went on meanwhile.

import { $, el, stored } from "./dom.mjs";
import { isOthers, kindOf } from "./model.mjs";
import { names } from "./story.mjs";
import { count, list, span } from "./words.mjs";

const MOST = 50;

/** Agents by their last record, the newest first; `name` is null for calls that named nobody. */
export function agentsOf(records, tasks, openers) {
  const agents = new Map();
  const of = (name) => {
    if (!agents.has(name)) agents.set(name, newAgent(name));
    return agents.get(name);
  };
  const opener = (session) => of(openers.get(session) ?? null);
  for (const record of records) {
    if (COUNTED[record.kind] === undefined) continue;
    const one = of(record.agent);
    if (record.at > one.last_at) one.last_at = record.at;
    COUNTED[record.kind](one, record, opener);
  }
  for (const { holder } of tasks) if (openers.has(holder)) opener(holder).holds += 1;
  return [...agents.values()].sort((a, b) => (a.last_at < b.last_at ? 1 : -1));
}

const newAgent = (name) => ({
  name, clients: new Set(), sessions: 0, sealed: 0, calls: 0, refused: 0, thoughts: 0, created: 0, finished: 0,
  cancelled: 0, retried: 0, abandoned: 0, verified: 0, holds: 0, edits: 0, commands: 0, last_at: "",
});

const COUNTED = {
  "call.enter": (one, { body }) => {
    if (body?.client) one.clients.add(body.client);
  },
  "call.exit": (one, { body }) => {
    one.calls += 1;
    one.refused += body?.outcome === "refused";
    one.verified += body?.tool === "audit_verify_chain" && body.outcome === "ok";
  },
  "session.open": (one) => (one.sessions += 1),
  "session.seal": (_, { session }, opener) => (opener(session).sealed += 1),
  thought: (one) => (one.thoughts += 1),
  deed: (one, { body }) => {
    const isEnd = body !== null && ["tool.end", "tool.failed"].includes(body.event);
    one.edits += isEnd && body.class === "edit";
    one.commands += isEnd && body.class === "run";
  },
  task: (one, { body }, opener) => {
    const [old, now] = body?.set?.status ?? [];
    one.created += body?.version === 1;
    one.finished += now === "DONE";
    one.cancelled += now === "CANCELLED";
    one.retried += old === "VERIFY" && now === "GATHER";
    if (body?.taken !== undefined) opener(body.set.holder[0]).abandoned += 1;
  },
};

/** Show them. */
export function showPeople({ own, tasks, openers, entries, scope, sessions }) {
  const held = scope.kind === "session" ? tasks.filter(({ holder }) => holder === scope.id) : tasks;
  const agents = agentsOf(own, held, openers);
  const rows = agents.slice(0, MOST).map(row);
  if (agents.length > MOST) rows.push(el("li", {}, `And ${count(agents.length - MOST, "more agent")}.`));
  const nodes = [el("ul", { class: "lines", id: "agents" }, ...rows)];
  const others = scope.kind === "session" ? otherWork(entries, sessions.find(({ id }) => id === scope.id)) : [];
  if (others.length > 0) {
    nodes.push(
      el("h3", {}, "Not part of this session"),
      el("p", {}, "This concerns the session’s tasks but is not counted as its work."),
      el("ul", { class: "lines", id: "other-work" }, ...others.map(otherRow)),
    );
  }
  $("people-list").replaceChildren(...nodes);
}

function row(agent) {
  const parts = [
    [agent.thoughts, "thought"],
    [agent.created, "task created", "tasks created"],
    [agent.finished, "task finished", "tasks finished"],
    [agent.cancelled, "task cancelled", "tasks cancelled"],
    [agent.retried, "task tried again", "tasks tried again"],
    [agent.abandoned, "task left behind", "tasks left behind"],
    [agent.holds, "task in hand", "tasks in hand"],
    [agent.edits, "file edit"],
    [agent.commands, "command"],
    [agent.refused, "refused call"],
    [agent.verified, "check of the log", "checks of the log"],
  ].filter(([some]) => some > 0).map((part) => count(...part));
  const clients = [...agent.clients];
  return el("li", {},
    el("p", {}, el("b", {}, ...nameOf(agent.name)), clients.length > 0 ? " with the program " : "", ...names(clients)),
    el("p", { class: "soft" }, `${list(parts) || count(agent.calls, "call")}.`));
}

const nameOf = (name) => (name === null ? ["An agent that gave no name"] : [stored(name)]);

/** Entries of other work by session: {session, agents, tasks, thoughts, changes, first, last, isBefore}. */
function otherWork(entries, { opening }) {
  const groups = new Map();
  for (const entry of entries.filter(isOthers)) {
    const isBefore = opening !== null && entry.seq < opening.seq;
    const key = `${isBefore} ${entry.session}`;
    if (!groups.has(key)) groups.set(key, { session: entry.session, isBefore, entries: [] });
    groups.get(key).entries.push(entry);
  }
  return [...groups.values()];
}

function otherRow({ session, isBefore, entries }) {
  const agents = [...new Set(entries.map(({ agent }) => agent))].filter(Boolean);
  const changes = entries.flatMap(({ changes: made }) => made);
  const place = session === null ? ["outside any session"] : ["in session ", stored(session)];
  const who = agents.length === 0 ? ["Somebody who gave no name"] : names(agents);
  const did = workOn(changes);
  return el("li", {},
    el("p", {}, el("b", {}, isBefore ? "Before it: " : "Meanwhile: "), ...who, ", ", ...place, ", ", ...did, "."),
    el("p", { class: "soft" }, `${span(entries[0].at, entries.at(-1).at)}.`));
}

/** "created T-1 and T-2, finished T-1": what these records did to which tasks. */
function workOn(changes) {
  const to = (status) => ({ body }) => body?.set?.status?.[1] === status;
  const isCreation = (record) => kindOf(record) === "creation";
  const ended = [["finished ", to("DONE")], ["cancelled ", to("CANCELLED")]];
  const said = [["created ", isCreation], ...ended].map(([verb, fits]) => [verb, tasksOf(changes.filter(fits))]);
  const told = new Set(said.flatMap(([, ids]) => ids));
  const rest = tasksOf(changes).filter((id) => !told.has(id));
  const parts = [...said, ["worked on ", rest]].filter(([, ids]) => ids.length > 0);
  if (parts.length === 0) return ["changed no task"];
  return parts.flatMap(([verb, ids], at) => [at > 0 ? ", " : "", verb, ...names(ids)]);
}

const tasksOf = (changes) => [...new Set(changes.map(({ task }) => task))].filter(Boolean);
