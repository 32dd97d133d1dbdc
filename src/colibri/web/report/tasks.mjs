// The tasks: a row for each with the steps that it took, and a picture of which waits for which.

import { $, button, cut, el, plain, stored, svg } from "./dom.mjs";
import { state } from "./story.mjs";
import { count } from "./words.mjs";

const STEPS = ["INIT", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY", "DONE"];
const AT_ONCE = 50;
const MOST_DRAWN = 40;

/** Show them; `choose(id)` narrows the timeline to one. */
export function showTasks(tasks, choose) {
  $("task-count").textContent = counts(tasks);
  showPicture(tasks);
  let shown = 0;
  const showMore = () => {
    const next = tasks.slice(shown, shown + AT_ONCE);
    $("task-list").append(...next.map((task) => row(task, choose)));
    shown += next.length;
    $("more-tasks").hidden = shown === tasks.length;
  };
  $("more-tasks").onclick = showMore;
  showMore();
}

function counts(tasks) {
  if (tasks.length === 0) return "No task belongs to this evidence.";
  const parts = [...STEPS, "CANCELLED"].flatMap((status) => {
    const number = tasks.filter((task) => task.status === status).length;
    return number > 0 ? [`${number} ${status}`] : [];
  });
  const unknown = tasks.filter(({ status }) => status === null).length;
  if (unknown > 0) parts.push(`${unknown} not in this file`);
  return `${count(tasks.length, "task")} at the end of the evidence: ${parts.join(", ")}.`;
}

function row(task, choose) {
  const { id, title, status, attempt, thoughts, erased, depends_on: needed } = task;
  const lost = () => el("span", { class: "erased" }, erased ? "title erased" : "title not here");
  const facts = [count(thoughts, "thought")];
  if (attempt > 1) facts.push(`attempt ${attempt}`);
  if (needed.length > 0) facts.push(`waits for ${plain(needed.join(", "), 160)}`);
  const label = { "aria-label": `${id} in the timeline` };
  return el("li", { class: "task", "data-status": status },
    el("p", { class: "task-name" }, el("b", {}, id), " ", title === null ? lost() : stored(cut(title, 300))),
    track(task),
    el("p", { class: "task-facts" },
      state(status),
      el("span", { class: "soft" }, facts.join(" · ")),
      button("in the timeline", () => choose(id), label)));
}

/** Seven steps, filled as far as the task came. */
function track({ status, path }) {
  const last = path.findLast((step) => step.status !== "CANCELLED")?.status ?? "INIT";
  const reached = STEPS.indexOf(last);
  const place = (at) => (at > reached ? "ahead" : at === reached ? "here" : "taken");
  const steps = STEPS.map((name, at) => el("span", { class: "step", title: name, "data-step": place(at) }));
  const label = status === "CANCELLED"
    ? `cancelled after ${last}`
    : `${last}, step ${reached + 1} of ${STEPS.length}`;
  return el("div", { class: "track", role: "img", "aria-label": label, "data-status": status }, ...steps);
}

// The picture: columns from what must come first to what waits longest.

const [WIDTH, HEIGHT, ACROSS, DOWN] = [176, 52, 232, 68];

function showPicture(tasks) {
  const linked = new Set(tasks.flatMap(({ id, depends_on: needed }) => (needed.length > 0 ? [id, ...needed] : [])));
  const drawn = tasks.filter(({ id }) => linked.has(id));
  $("task-picture").hidden = drawn.length === 0 || drawn.length > MOST_DRAWN;
  if (!$("task-picture").hidden) $("task-drawing").replaceChildren(picture(drawn));
}

function picture(tasks) {
  const places = place(tasks);
  const [columns, rows] = [0, 1].map((axis) => 1 + Math.max(...[...places.values()].map((at) => at[axis])));
  const [width, height] = [(columns - 1) * ACROSS + WIDTH + 2, (rows - 1) * DOWN + HEIGHT + 2];
  const arrows = tasks.flatMap(({ id, depends_on: needed }) =>
    needed.filter((other) => places.has(other)).map((other) => arrow(places.get(other), places.get(id))));
  const waits = tasks.filter(({ depends_on: needed }) => needed.length > 0);
  const says = waits.map(({ id, depends_on: needed }) => `${id} waits for ${needed.join(", ")}`);
  const label = { role: "img", "aria-label": plain(says.join("; "), 2_000) };
  return svg("svg", { width, height, viewBox: `-1 -1 ${width} ${height}`, ...label },
    ...arrows, ...tasks.map((task) => box(task, places.get(task.id))));
}

/** Task → [column, row]: one column after all that it waits for. */
export function place(tasks) {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const columns = new Map();
  const column = (id) => {
    if (!columns.has(id)) {
      columns.set(id, 0); // for a forged one that waits for itself
      const needed = byId.get(id).depends_on.filter((other) => byId.has(other));
      columns.set(id, 1 + Math.max(-1, ...needed.map(column)));
    }
    return columns.get(id);
  };
  const used = [];
  return new Map(tasks.map(({ id }) => {
    const at = column(id);
    used[at] = (used[at] ?? 0) + 1;
    return [id, [at, used[at] - 1]];
  }));
}

function arrow([fromColumn, fromRow], [toColumn, toRow]) {
  const [x, y] = [fromColumn * ACROSS + WIDTH, fromRow * DOWN + HEIGHT / 2];
  const [u, v] = [toColumn * ACROSS, toRow * DOWN + HEIGHT / 2];
  const bend = (x + u) / 2;
  return svg("g", { class: "arrow" },
    svg("path", { d: `M${x} ${y}C${bend} ${y} ${bend} ${v} ${u - 7} ${v}` }),
    svg("path", { class: "tip", d: `M${u - 8} ${v - 4}L${u - 1} ${v}L${u - 8} ${v + 4}Z` }));
}

function box({ id, title, status }, [column, row]) {
  const [x, y] = [column * ACROSS, row * DOWN];
  const [left, right] = [x + 12, x + WIDTH - 12];
  return svg("g", { class: "box", "data-status": status },
    svg("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 6 }),
    svg("text", { x: left, y: y + 21, class: "box-id" }, id),
    svg("text", { x: right, y: y + 21, class: "box-state", "text-anchor": "end" }, status ?? "unknown"),
    svg("text", { x: left, y: y + 40, class: "box-title" }, plain(title ?? "", 22)));
}
