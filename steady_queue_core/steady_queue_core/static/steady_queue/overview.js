// Refreshes the overview: fetches what has changed, and swaps the parts of the page that differ.

const KEY = "steady-queue.refresh";
const SLOW = 500; // Milliseconds of an answer after which the pause doubles.
const MOST = 16; // Times as long as chosen, at most.
const PATIENCE = 10_000; // Milliseconds until an answer is given up: a table may be locked.
const CLOSER = 30_000; // Milliseconds from one closer look to the next.

const live = document.getElementById("sq-live");
const label = document.getElementById("sq-refresh");
const status = document.getElementById("sq-status");

let etag = "";
let timer = 0;
let times = 1;
let asking = false;
let looked = -Infinity;

function chosen() {
  try {
    const kept = localStorage.getItem(KEY);
    return ["0", "5", "15", "60"].includes(kept) ? Number(kept) : 5;
  } catch {
    return 5; // The browser keeps nothing.
  }
}

function choose(seconds) {
  try {
    localStorage.setItem(KEY, seconds);
  } catch {
    // It is in force until the page is left.
  }
}

function isRead(part) {
  const selection = getSelection();
  return !selection.isCollapsed && part.contains(selection.anchorNode);
}

function swap(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  if (fresh.querySelectorAll("[data-part]").length > live.querySelectorAll("[data-part]").length) {
    location.reload(); // What was not read before is read now.
    return;
  }
  for (const part of live.querySelectorAll("[data-part]")) {
    const other = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!other) continue;
    if (isRead(part)) {
      etag = ""; // It is out of date: ask for all again.
      continue;
    }
    for (const each of part.querySelectorAll("details[open]")) {
      other.querySelector(`#${each.id}`)?.setAttribute("open", "");
    }
    if (other.isEqualNode(part)) continue;
    const focused = part.contains(document.activeElement) ? place(part) : -1;
    const scrolled = [...part.querySelectorAll(".sq-wide")].map((each) => [each.scrollLeft, each.scrollTop]);
    part.className = other.className;
    part.replaceChildren(...other.childNodes);
    part.querySelectorAll(".sq-wide").forEach((each, at) => each.scrollTo(...(scrolled[at] ?? [0, 0])));
    if (focused >= 0) reachable(part)[focused]?.focus({ preventScroll: true });
  }
}

function reachable(part) {
  return [...part.querySelectorAll("a, button, summary, [tabindex]")];
}

function place(part) {
  return reachable(part).indexOf(document.activeElement);
}

async function refresh() {
  if (asking) return;
  asking = true;
  const begun = performance.now();
  let told = "";
  try {
    const headers = etag ? { "If-None-Match": etag } : {};
    const looks = begun - looked > CLOSER;
    const address = live.dataset.refresh + (looks ? "&closer=1" : "");
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(address, { headers, signal, cache: "no-store", redirect: "manual" });
    if (looks) looked = begun;
    if (answer.ok) {
      const text = await answer.text();
      etag = answer.headers.get("ETag") ?? "";
      swap(text);
    } else if (answer.status !== 304) {
      told = answer.type === "opaqueredirect" ? "Signed out" : `Not refreshed: error ${answer.status}`;
    }
  } catch {
    told = "Not refreshed: no answer";
    looked = -Infinity; // A closer look tells what it waits for.
  }
  asking = false;
  const slow = told || performance.now() - begun > SLOW;
  times = slow ? Math.min(times * 2, MOST) : 1;
  status.textContent = `${told || "Refreshed"} ${new Date().toLocaleTimeString()}`;
  schedule();
}

function schedule() {
  clearTimeout(timer);
  const seconds = Number(label.querySelector("select").value);
  if (seconds && !document.hidden) timer = setTimeout(refresh, seconds * 1000 * times);
}

if (live && label && status) {
  const select = label.querySelector("select");
  select.value = String(chosen());
  label.hidden = false;
  select.addEventListener("change", () => {
    choose(select.value);
    times = 1;
    schedule();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || select.value === "0") schedule();
    else refresh();
  });
  schedule();
}
