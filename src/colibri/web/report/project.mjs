// Of a whole project: its sessions, and what nobody has verified or sealed yet.

import { $, cut, el, stored } from "./dom.mjs";
import { portions } from "./decisions.mjs";
import { lastCheck, link, names } from "./story.mjs";
import { count, list, span } from "./words.mjs";

const AT_ONCE = 20;
const FEW = 12;

/** Show both; `reveal(seq)` leads to a record in the timeline. */
export function showProject(model, reveal) {
  const isProject = model.scope.kind === "log";
  $("unverified").hidden = !isProject;
  $("sessions").hidden = !isProject;
  if (!isProject) return;
  $("story").after($("tasks")); // what is being worked on comes first
  document.querySelector("nav [href='#story']").after(" ", document.querySelector("nav [href='#tasks']"));
  $("unverified-list").replaceChildren(...unverified(model, reveal).map((said) => el("li", {}, el("p", {}, ...said))));
  const newest = model.sessions.toReversed();
  const works = workOf(model.own);
  const draw = (session) => row(session, works.get(session.id), model, reveal);
  portions("more-sessions", $("session-list"), newest, AT_ONCE, draw);
  if (newest.length === 0) $("session-list").append(el("li", { class: "soft" }, "No session was opened."));
}

/** What is not sealed or was not checked, a line each. */
export function unverified({ own, sessions, entries, tasks, head }, reveal) {
  const said = [];
  const last = lastCheck(entries);
  if (last === undefined) {
    said.push([`No agent had the log checked: this page is the first to check its ${count(own.length, "record")}.`]);
  } else if (head.seq > last.last) {
    const since = `${count(head.seq - last.last, "record")} since the last check by an agent, `;
    said.push([since, link(last.seq, reveal), ` on ${span(last.at, last.at)}.`]);
  }
  const open = sessions.filter(({ seal }) => seal === null);
  if (open.length > 0) {
    const thoughts = open.reduce((sum, session) => sum + session.thoughts.length, 0);
    const which = names(open.map(({ id }) => id), FEW);
    const uncovered = `), with ${count(thoughts, "thought")} that no seal covers.`;
    said.push([`${count(open.length, "session is", "sessions are")} open (`, ...which, uncovered]);
  }
  const unsealed = unsealedTasks(tasks, sessions);
  if (unsealed.length > 0) {
    const finished = `${count(unsealed.length, "task was", "tasks were")} finished in work that is not sealed: `;
    said.push([finished, ...names(unsealed, FEW), "."]);
  }
  const reported = new Set(own.filter(({ kind }) => kind === "deed").map(({ session }) => session));
  const silent = sessions.filter(({ id }) => !reported.has(id)).length;
  if (silent > 0) said.push([`No host reported edits or commands for ${count(silent, "session")}.`]);
  const running = entries.filter(({ type }) => type === "open");
  if (running.length > 0) said.push([`${count(running.length, "call has", "calls have")} not ended.`]);
  return said.length > 0 ? said : [["Nothing: every session is sealed, and an agent had every record checked."]];
}

/** Tasks that were finished outside any sealed session. */
function unsealedTasks(tasks, sessions) {
  const sealed = new Set(sessions.filter(({ seal }) => seal !== null).map(({ id }) => id));
  return tasks.filter(({ status, path }) => status === "DONE" && !sealed.has(path.at(-1).session)).map(({ id }) => id);
}

/** Session → its tasks by what it did to them, and its times. */
function workOf(records) {
  const works = new Map();
  for (const { session, kind, body, task, at } of records) {
    if (session === null) continue;
    if (!works.has(session)) works.set(session, { done: new Set(), touched: new Set(), first: at, last: at, refused: 0 });
    const work = works.get(session);
    work.last = at;
    if (kind === "call.exit") work.refused += body?.outcome === "refused";
    if (kind !== "task") continue;
    work.touched.add(task);
    if (body?.set?.status?.[1] === "DONE") work.done.add(task);
  }
  return works;
}

function row({ id, opening, seal, thoughts }, { done, touched, first, last, refused }, { openers }, reveal) {
  const intent = opening?.body?.intent ?? null;
  const agent = openers.get(id) ?? null;
  const facts = [
    count(thoughts.length, "thought"),
    touched.size > 0 ? count(touched.size, "task changed", "tasks changed") : "no task changed",
    done.size > 0 ? count(done.size, "task finished", "tasks finished") : "",
    refused > 0 ? count(refused, "refused call") : "",
  ].filter(Boolean);
  return el("li", { "data-open": seal === null },
    el("p", {}, el("b", {}, stored(id)), agent === null ? "" : " by ", agent === null ? "" : stored(agent), " ",
      el("span", { class: "session-state", "data-open": seal === null }, seal === null ? "open" : "sealed")),
    intent === null
      ? el("p", { class: "erased" }, "Its intent was erased.")
      : el("p", { class: "quote" }, stored(cut(intent, 300))),
    el("p", { class: "soft" }, `${span(first, last)}. ${list(facts)}. `, opening === null ? "" : link(opening.seq, reveal)));
}
