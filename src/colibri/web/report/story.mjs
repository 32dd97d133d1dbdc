// What was asked, by whom, when, and what came of it: a few lines for somebody in a hurry.

import { $, button, copyable, cut, el, passage, plain, stored } from "./dom.mjs";
import { kindOf, rootOf } from "./model.mjs";
import { count, list, shortHash, span } from "./words.mjs";

const MOST = 12; // of what may be many
const FEW = 5;

/** Fill the top of the page and its summary; `reveal(seq)` leads to a record in the timeline. */
export function showStory(model, reveal) {
  const title = titleOf(model);
  document.title = `${plain(title, 80)} – Colibri report`;
  $("title").replaceChildren(stored(cut(title, 160)));
  $("scope").replaceChildren(stored(scopeText(model)));
  $("summary").replaceChildren(
    row(ASKED[model.scope.kind] ?? "Scope", asked(model)),
    row("By", [by(model), ...through(model)]),
    row("When", [when(model)]),
    row("Done", [doings(model)]),
    ...decisions(model, reveal),
    ...reflections(model, reveal),
    row("Outcome", outcome(model)),
  );
  $("values").replaceChildren(...values(model));
  $("values-part").hidden = false;
}

/** The head and the roots that this file holds, to be compared with those from elsewhere. */
function values({ head, sessions }) {
  const sealed = sessions.filter(({ seal }) => seal?.body);
  const name = ({ id }) => (sealed.length === 1 ? "Root" : `Root of ${plain(id, 64)}`);
  const roots = sealed.slice(0, MOST).map((session) => [name(session), rootOf(session.seal.body)]);
  return [...roots, ["Head", `${head.seq}:${head.leaf}`]].map(([title, value]) =>
    el("div", {}, el("dt", {}, title), el("dd", {}, copyable(plain(value), `the ${title.toLowerCase()}`))));
}

/** A task's state, as it is marked everywhere on the page. */
export function state(status) {
  return el("span", { class: "task-state", "data-status": status ?? "unknown" }, status ?? "unknown");
}

function row(name, what) {
  return el("div", { class: "line" }, el("dt", {}, name), el("dd", {}, el("div", {}, ...what)));
}

const ASKED = { session: "Intent, in the agent’s words", task: "Task, in the agent’s words" };
const SHORT = 60; // seconds in which no person, and few agents, could have done much

const sentence = (...parts) => el("p", {}, ...parts);

function scopeText({ scope, recordCount }) {
  const records = count(recordCount, "record");
  return scope.kind === "log" ? `The whole log, ${records}` : `${scope.kind} ${scope.id}, ${records}`;
}

const ownTask = ({ scope, tasks }) =>
  (scope.kind === "task" ? tasks.find(({ id }) => id === scope.id) : undefined);

/** What was asked for: a session's intent or a task's title; null if that is not there. */
function askedText(model) {
  const { scope, sessions } = model;
  if (scope.kind === "task") return ownTask(model)?.title ?? null;
  const session = scope.kind === "session" ? sessions.find(({ id }) => id === scope.id) : undefined;
  return session?.opening?.body?.intent ?? null;
}

function titleOf(model) {
  const { kind, id } = model.scope;
  return askedText(model) ?? (kind === "log" ? "A whole log" : `A ${kind} whose text is not here: ${id}`);
}

function asked(model) {
  const text = askedText(model);
  if (model.scope.kind === "log") return [sentence("This is all that was recorded.")];
  if (text === null) return [el("p", { class: "erased" }, "The text was erased.")];
  const description = ownTask(model)?.description ?? null;
  return [passage(text, "quote"), description === null ? null : passage(description, "quote")];
}

function by(model) {
  const { agents } = model;
  const assignee = ownTask(model)?.assignee ?? null;
  const names = agents.slice(0, MOST).flatMap((agent, at) => [at > 0 ? ", " : "", stored(agent)]);
  const self = agents.length > 1 ? "Agents that called themselves " : "An agent that called itself ";
  const said = names.length > 0 ? [self, ...names] : ["One agent or several; none gave a name"];
  if (agents.length > MOST) said.push(` and ${count(agents.length - MOST, "other")}`);
  if (assignee !== null) said.push("; the task was assigned to ", stored(assignee));
  return sentence(...said, ".");
}

/** The programs that the agents worked in, as these called themselves. */
function through({ clients }) {
  if (clients.length === 0) return [];
  const names = clients.slice(0, MOST).flatMap((client, at) => [at > 0 ? ", " : "", stored(client)]);
  return [sentence("Through ", ...names, ".")];
}

function when({ entries }) {
  const told = entries.filter(({ type, isOwn }) => isOwn && !["gap", "hidden"].includes(type));
  const times = told.map(({ at }) => at).sort();
  if (times.length === 0) return sentence("Nothing here has a time.");
  const seconds = (Date.parse(times.at(-1)) - Date.parse(times[0])) / 1000;
  const lasted = seconds < SHORT ? `, within ${seconds.toFixed(2)} s` : "";
  return sentence(`${span(times[0], times.at(-1))}${lasted}, by the clock of the server.`);
}

/** A text that comes with another change of its task is no change of its own. */
const counts = ({ kind }, made) => kind !== "task.text" || !made.some((other) => other.kind === "task");

function doings({ entries }) {
  const own = entries.filter(({ isOwn }) => isOwn);
  const number = (wanted) => own.filter(({ type }) => type === wanted).length;
  const changes = own.flatMap(({ changes: made }) => made.filter((record) => counts(record, made)));
  const kinds = changes.map(kindOf);
  const [thoughts, created, moves, claims, edits] = ["thought", "creation", "move", "claim", "edit"].map(
    (wanted) => kinds.filter((kind) => kind === wanted).length);
  const [looks, open, refused] = ["call", "open", "refused"].map(number);
  const parts = [
    [thoughts, "thought"],
    [created, "new task"],
    [moves, "move of a task", "moves of tasks"],
    [claims, "task claimed or released", "tasks claimed or released"],
    [edits, "edit of a task", "edits of tasks"],
    [looks, "call that changed nothing", "calls that changed nothing"],
    [open, "call that never ended", "calls that never ended"],
  ].filter(([some]) => some > 0).map((part) => count(...part));
  const end = refused === 0
    ? "No call that is shown here was refused."
    : `${count(refused, "call was", "calls were")} refused.`;
  return sentence(`${list(parts) || "Nothing but a session that was opened"}. ${end}`);
}

/** Why it did what it did, in its own words; all its thoughts are in the timeline. */
function decisions(model, reveal) {
  return thoughtRow("Decisions on the way", thoughtsOf(model, "decision"), "other decision", model, reveal);
}

/** How it looked back: a decision may have been given up, and the last word on a task tells. */
function reflections(model, reveal) {
  const last = new Map(thoughtsOf(model, "reflection").map((entry) => [entry.task, entry]));
  return thoughtRow("Last reflection on each task", [...last.values()], "other task", model, reveal);
}

const thoughtsOf = ({ entries }, wanted) =>
  entries.filter(({ type, isOwn, changes: [record] }) =>
    isOwn && type === "thought" && record.body?.type === wanted);

function thoughtRow(name, made, others, { tasks }, reveal) {
  if (made.length === 0) return [];
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const said = made.slice(0, FEW).map((entry) => quoted(entry, byId.get(entry.task), reveal));
  if (made.length > FEW) said.push(sentence(`And ${count(made.length - FEW, others)}, in the timeline.`));
  return [row(name, said)];
}

function quoted({ task: id, attempt, changes: [{ seq, body }] }, task, reveal) {
  const about = id === null ? [] : [" ", stored(id)];
  if (attempt !== undefined && task.attempt > 1) about.push(`, attempt ${attempt}`);
  if (attempt < task?.attempt) about.push(", after which it was tried again");
  const source = el("span", { class: "source" }, button(`R-${seq}`, () => reveal(seq), { class: "link" }), ...about);
  return el("p", { class: "quote" }, stored(cut(body.content, 300)), " ", source);
}

function outcome({ scope, did, tasks, ownTasks, sessions }) {
  const own = scope.kind === "session" ? tasks.filter(({ id }) => ownTasks.has(id)) : tasks;
  const said = own.slice(0, MOST).map((task) => taskOutcome(task, scope));
  said.unshift(sentence(own.length === 0 ? "No task was changed." : progress(own)));
  if (scope.kind === "session") said.unshift(sentence(`This session ${deeds(did)}.`));
  if (own.length > MOST) said.push(sentence(`And ${count(own.length - MOST, "other task")}, below.`));
  const others = tasks.length - own.length;
  if (others > 0) {
    const what = count(others, "other task is", "other tasks are");
    said.push(sentence(`${what} shown because this work names or depends on them; others worked on them.`));
  }
  const ours = scope.kind === "session" ? sessions.filter(({ id }) => id === scope.id) : sessions;
  return [...said, ...ours.slice(0, MOST).map(sessionOutcome)];
}

/** What a session itself did to tasks. */
function deeds({ created, done, cancelled }) {
  const parts = [[created, "created"], [done, "finished"], [cancelled, "cancelled"]]
    .filter(([some]) => some > 0)
    .map(([some, verb]) => `${verb} ${count(some, "task")}`);
  return list(parts) || "neither created nor finished a task";
}

/** How many have come how far, in words. */
function progress(tasks) {
  const number = (wanted) => tasks.filter(({ status }) => status === wanted).length;
  const [done, dropped, waiting, unknown] = ["DONE", "CANCELLED", "INIT", null].map(number);
  const begun = tasks.length - done - dropped - waiting - unknown;
  const parts = [
    [done, "is done", "are done"],
    [dropped, "was cancelled", "were cancelled"],
    [begun, "was begun and is not finished", "were begun and are not finished"],
    [waiting, "was not begun", "were not begun"],
    [unknown, "is in a state that is not told here", "are in a state that is not told here"],
  ].filter(([some]) => some > 0).map((part) => count(...part));
  return `Of ${count(tasks.length, "task")} ${list(parts)}.`;
}

/** How far a task came; in a session's report also if others brought it there. */
function taskOutcome({ id, title, status, attempt, erased, path }, scope) {
  const name = title !== null ? stored(cut(title, 160)) : erased ? "(its title was erased)" : "";
  const tries = attempt > 1 ? `, in attempt ${attempt}` : "";
  const mover = path.at(-1)?.session ?? null;
  const others = scope.kind === "session" && mover !== scope.id
    ? [", moved there ", mover === null ? "outside any session" : "by session ", mover === null ? "" : stored(mover)]
    : [];
  const far = status === "INIT" ? ", not begun" : tries;
  return sentence(el("b", {}, id), " ", name, ": ", state(status), far, ...others, ".");
}

function sessionOutcome({ id, thoughts, seal }) {
  const name = el("b", {}, stored(id));
  if (seal === null) return sentence(name, `: not sealed; ${count(thoughts.length, "thought")} of it here.`);
  if (seal.body === null) return sentence(name, ": sealed, but what the seal says is not here.");
  const root = el("code", {}, shortHash(seal.body.root));
  return sentence(name, `: sealed with ${count(seal.body.count, "thought")}, root `, root, ".");
}
