// What was decided: every thought of type decision, whole, with the attempt that it belongs to.

import { $, el, passage, stored } from "./dom.mjs";
import { link, thoughtsOf } from "./story.mjs";
import { span } from "./words.mjs";

const AT_ONCE = 20;

/** Show them; `reveal(seq)` leads to a record in the timeline. */
export function showDecisions({ entries, tasks, scope }, reveal) {
  const inOrder = thoughtsOf(entries, "decision");
  const made = scope.kind === "log" ? inOrder.toReversed() : inOrder; // of a project the newest first
  const byId = new Map(tasks.map((task) => [task.id, task]));
  portions("more-decisions", $("decision-list"), made, AT_ONCE, (entry) => item(entry, byId.get(entry.task), reveal));
  if (made.length === 0) $("decision-list").append(el("li", { class: "soft" }, "No decision was recorded."));
}

/** Append items a portion at a time; all of them on paper. */
export function portions(buttonId, place, items, size, draw) {
  const more = $(buttonId);
  let shown = 0;
  const showMore = () => {
    const next = items.slice(shown, shown + size);
    place.append(...next.map(draw));
    shown += next.length;
    more.hidden = shown === items.length;
    more.textContent = `Show ${Math.min(size, items.length - shown)} more of ${items.length.toLocaleString("en")}`;
  };
  more.onclick = showMore;
  globalThis.addEventListener("beforeprint", () => {
    while (shown < Math.min(items.length, MOST_PRINTED)) showMore();
  });
  showMore();
}

const MOST_PRINTED = 2_000;

function item({ task: id, attempt, agent, at, changes: [{ seq, body }] }, task, reveal) {
  const about = id === null ? [] : [el("b", {}, stored(id)), task?.title ? " " : "", task?.title ? stored(task.title) : ""];
  const facts = [span(at, at)];
  if (agent !== null) facts.push(el("span", {}, "by ", stored(agent)));
  if (attempt < task?.attempt) facts.push(`in attempt ${attempt}, which failed its check`);
  else if (attempt > 1) facts.push(`in attempt ${attempt}`);
  return el("li", { class: "decision" },
    about.length > 0 ? el("p", { class: "about" }, ...about) : null,
    passage(body.content, "quote"),
    el("p", { class: "facts" }, ...facts.map((fact) => el("span", {}, fact)), link(seq, reveal)));
}
