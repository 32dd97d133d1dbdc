// What was asked, by whom, when, and what came of it: a few lines for somebody in a hurry.

import { $, cut, el, passage, plain, stored } from "./dom.mjs";
import { count, list, shortHash, span } from "./words.mjs";

const MOST = 12; // of what may be many

/** Fill the top of the page and its summary. */
export function showStory(model) {
  const title = titleOf(model);
  document.title = `${plain(title, 80)} – Colibri report`;
  $("title").replaceChildren(stored(cut(title, 160)));
  $("scope").replaceChildren(stored(scopeText(model)));
  $("summary").replaceChildren(
    row("Asked for", asked(model)),
    row("By", [by(model)]),
    row("When", [when(model)]),
    row("Done", [doings(model)]),
    row("Outcome", outcome(model)),
  );
}

/** A task's state, as it is marked everywhere on the page. */
export function state(status) {
  return el("span", { class: "task-state", "data-status": status ?? "unknown" }, status ?? "unknown");
}

function row(name, what) {
  return el("div", { class: "line" }, el("dt", {}, name), el("dd", {}, el("div", {}, ...what)));
}

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
  const said = names.length > 0 ? [self, ...names] : ["An agent that gave no name, or several"];
  if (agents.length > MOST) said.push(` and ${count(agents.length - MOST, "other")}`);
  if (assignee !== null) said.push("; the task was assigned to ", stored(assignee));
  return sentence(...said, ".");
}

function when({ entries }) {
  const told = entries.filter(({ type }) => !["gap", "hidden"].includes(type));
  const times = told.map(({ at }) => at).sort();
  if (times.length === 0) return sentence("Nothing here has a time.");
  const seconds = (Date.parse(times.at(-1)) - Date.parse(times[0])) / 1000;
  const lasted = seconds < SHORT ? `, within ${seconds.toFixed(2)} s` : "";
  return sentence(`${span(times[0], times.at(-1))}${lasted}, by the clock of the server.`);
}

function doings({ entries, sessions }) {
  const number = (wanted) => entries.filter(({ type }) => type === wanted).length;
  const thoughts = sessions.reduce((sum, session) => sum + session.thoughts.length, 0);
  const parts = [count(thoughts, "thought"), count(number("task"), "change of tasks", "changes of tasks")];
  const [looks, open, refused] = ["call", "open", "refused"].map(number);
  if (looks > 0) parts.push(count(looks, "call that only looked", "calls that only looked"));
  if (open > 0) parts.push(count(open, "call that never ended", "calls that never ended"));
  const end = refused === 0
    ? "No call that is shown here was refused."
    : `${count(refused, "call was", "calls were")} refused.`;
  return sentence(`${list(parts)}. ${end}`);
}

function outcome({ tasks, sessions }) {
  const known = tasks.filter(({ status }) => status !== null);
  const said = known.slice(0, MOST).map(taskOutcome);
  if (tasks.length === 0) said.push(sentence("No task belongs to this."));
  if (known.length > MOST) said.push(sentence(`And ${count(known.length - MOST, "other task")}, below.`));
  if (known.length < tasks.length) {
    const others = count(tasks.length - known.length, "other task is", "other tasks are");
    said.push(sentence(`${others} named whose records are not in this file.`));
  }
  return [...said, ...sessions.slice(0, MOST).map(sessionOutcome)];
}

function taskOutcome({ id, title, status, attempt, erased }) {
  const name = title !== null ? stored(cut(title, 160)) : erased ? "(its title was erased)" : "";
  const tries = attempt > 1 ? `, in attempt ${attempt}` : "";
  return sentence(el("b", {}, id), " ", name, ": ", state(status), tries, ".");
}

function sessionOutcome({ id, thoughts, seal }) {
  const name = el("b", {}, stored(id));
  if (seal === null) return sentence(name, `: not sealed; ${count(thoughts.length, "thought")} of it here.`);
  if (seal.body === null) return sentence(name, ": sealed, but what the seal says is not here.");
  const root = el("code", {}, shortHash(seal.body.root));
  return sentence(name, `: sealed with ${count(seal.body.count, "thought")}, root `, root, ".");
}
