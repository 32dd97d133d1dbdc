// A page whose file is kept current (colibri report --watch): it loads itself again and goes back to where
// its reader was. Without a server a page cannot ask whether its file has changed, so it loads it every few
// seconds, more seldom the longer a load takes. A page that is not watched never loads itself.

import { $ } from "./dom.mjs";

const SOONEST = 2_000; // ms from one load to the next
const SHARE = 4; // a fifth of the time at most is spent on loading
const STALE = 180_000; // ms without a sign of the command that watches
const BUSY = 1_500; // ms after the last key or click in which the page does not load
const LOOK = 250;
const PLACES = "h1, h2, h3, .entry, .decision, .task, .lines > li, .line";

/** Keep the page current, if its file is; `timeline` is asked which entries it shows. */
export function watch(timeline) {
  const written = Date.parse(document.querySelector("meta[name=colibri-watched]").content);
  $("watching").hidden = Number.isNaN(written);
  if (Number.isNaN(written)) return;
  const isOver = Date.now() - written > STALE;
  $("watching").textContent = isOver
    ? "Nothing keeps this page current any more: colibri report --watch has stopped."
    : "This page is kept current while colibri report --watch runs.";
  if (!isOver) setTimeout(loader(timeline), Math.max(SOONEST, SHARE * performance.now()));
}

/** Loads the page again, when its reader is looking at it and busy with nothing. */
function loader(timeline) {
  let used = -BUSY;
  for (const event of ["keydown", "pointerdown", "wheel"]) {
    globalThis.addEventListener(event, () => (used = performance.now()), { passive: true });
  }
  const load = () => {
    if (document.hidden || performance.now() - used < BUSY || String(getSelection()) !== "") {
      setTimeout(load, LOOK);
      return;
    }
    history.replaceState({ place: take(timeline) }, "");
    location.reload();
  };
  return load;
}

const fields = () => [...document.querySelectorAll("input, select")];

/** The details of a page by names that outlive a load: the nearest id, and which one it is below that. */
function details() {
  const seen = new Map();
  return [...document.querySelectorAll("details")].map((node) => {
    const near = node.closest("[id]").id;
    seen.set(near, (seen.get(near) ?? 0) + 1);
    return [`${near} ${seen.get(near)}`, node];
  });
}

/** Where the reader is: what is filled in, opened and in sight. */
function take(timeline) {
  return {
    fields: fields().map((field) => (field.type === "checkbox" ? field.checked : field.value)),
    open: details().filter(([, node]) => node.open).map(([name]) => name),
    theme: document.documentElement.dataset.theme ?? "",
    range: timeline.range,
    focus: document.activeElement?.id ?? "",
    sight: sight(),
  };
}

const placesIn = () => [...document.querySelectorAll(PLACES)].filter((node) => node.getClientRects().length > 0);

/** The first thing in the window, by its words or its id, and how far below the top it is. */
function sight() {
  if (scrollY === 0) return null;
  const all = placesIn();
  const at = all.findIndex((node) => node.getBoundingClientRect().bottom > 0);
  return at === -1 ? null : { name: nameOf(all[at]), at, top: all[at].getBoundingClientRect().top };
}

const nameOf = (node) => node.id || node.textContent.slice(0, 60);

/** Go back there; whether there was such a place. */
export function goBack(timeline, setTheme) {
  const place = history.state?.place;
  if (place == null) return false;
  history.scrollRestoration = "manual";
  const { fields: values, open, theme, range, focus } = place;
  fields().forEach((field, at) => {
    if (field.type === "checkbox") field.checked = values[at];
    else field.value = values[at];
  });
  setTheme(theme);
  timeline.filter(range);
  for (const [name, node] of details()) node.open = open.includes(name);
  if (place.sight !== null) scrollBack(place.sight);
  if (focus !== "") $(focus)?.focus({ preventScroll: true });
  return true;
}

function scrollBack({ name, at, top }) {
  const all = placesIn();
  const node = all.find((one) => nameOf(one) === name) ?? all[Math.min(at, all.length - 1)];
  scrollBy({ top: node.getBoundingClientRect().top - top, behavior: "instant" });
}
