// A small OpenCode: loads a plugin and hands it events and hook calls, as told line by line.
//
// Argument: the plugin. Each line is one act: {"open": FOLDER} calls the plugin for a folder,
// {"event": {...}}, {"hook": NAME, "given": [...]} and {"dispose": true} go to the newest plugin of "in"
// (the last folder that was opened); {"know": {...}} says what the client answers: sessions by id with
// parentID, messages, children, busy; and "pages" (it pages), "mood" (answers, slowly, fails, hangs,
// waits until it changes).
// {"settle": true} waits until the plugin has done and posted everything, and tells what
// it "asked" since the last time, and how many timers hold the process.
// The answer: {"returned" or "threw", "sync" (ms until it returned), "ms", "changed" (what was given)}.
// Waits of 5 s and more have a clock of their own, too, which {"later": MS} moves on.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { setTimeout: setTimeoutAsItIs, clearTimeout: clearTimeoutAsItIs } = globalThis;
const waits = new Map(); // Timers of the usual kind, with what they do, and when by that clock.
let now = 0;
let slow = 0; // Answers that take their time.

globalThis.setTimeout = (act, ms, ...more) => {
  if (ms < 5000) return setTimeoutAsItIs(act, ms, ...more);
  const timer = setTimeoutAsItIs(() => waits.get(timer).act(), ms);
  waits.set(timer, { due: now + ms, act: () => (globalThis.clearTimeout(timer), act(...more)) });
  return timer;
};
globalThis.clearTimeout = (timer) => {
  waits.delete(timer);
  clearTimeoutAsItIs(timer);
};

async function turns() {
  do {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  } while (slow > 0);
}

async function later(ms) {
  const end = now + ms;
  for (;;) {
    await turns();
    const [timer] = [...waits.keys()].sort((a, b) => waits.get(a).due - waits.get(b).due);
    if (!timer || waits.get(timer).due > end) break;
    now = waits.get(timer).due;
    waits.get(timer).act();
  }
  now = end;
}

for (const name of ["unhandledRejection", "uncaughtException"]) {
  process.on(name, (error) => console.error(name, error));
}

const known = { sessions: {}, pages: true, mood: "answers" };
const asked = []; // What the plugin wanted to know.
const opened = new Map();
let last;

async function answer(what, options, data, headers = {}) {
  asked.push({ what, ...options });
  if (known.mood === "hangs") await new Promise(() => {});
  if (known.mood === "slowly") {
    slow++;
    await new Promise((resolve) => setTimeoutAsItIs(resolve, 20));
    slow--;
  }
  while (known.mood === "waits") await new Promise((resolve) => setTimeoutAsItIs(resolve, 1));
  if (known.mood === "fails") throw new Error("no connection");
  if (data === undefined) return { error: { name: "NotFoundError" }, response: { headers: new Headers() } };
  return { data, request: {}, response: { headers: new Headers(headers) } };
}

const client = {
  session: {
    get: (options) => answer("get", options, known.sessions[options.path.id]),
    children: (options) => answer("children", options, known.sessions[options.path.id]?.children ?? []),
    status: (options) => {
      const busy = Object.entries(known.sessions).filter(([, one]) => one.busy);
      return answer("status", options, Object.fromEntries(busy.map(([id]) => [id, { type: "busy" }])));
    },
    messages: (options) => {
      const all = known.sessions[options.path.id]?.messages;
      const { limit, before } = options.query ?? {};
      const end = before === undefined ? all?.length : Number(before);
      const begin = limit ? Math.max(0, end - limit) : 0;
      const more = known.pages && begin > 0 ? { "X-Next-Cursor": String(begin) } : {};
      return answer("messages", options, all?.slice(begin, end), more);
    },
  },
};

async function call(act, given) {
  const before = JSON.stringify(given);
  const begun = performance.now();
  const told = {};
  try {
    const promise = act?.(...given);
    told.sync = performance.now() - begun;
    told.returned = (await promise) ?? null;
  } catch (error) {
    told.threw = String(error?.stack);
  }
  return { ...told, ms: performance.now() - begun, changed: JSON.stringify(given) !== before };
}

async function open(folder) {
  const plugins = Object.values(await import(pathToFileURL(process.argv[2]).href));
  const context = { client, directory: folder, worktree: "/", project: { id: "global" }, serverUrl: null };
  for (const plugin of plugins) opened.set(folder, await plugin(context));
  last = folder;
  return { plugins: plugins.length, hooks: Object.keys(opened.get(folder)) };
}

async function settle() {
  await turns();
  const key = Object.getOwnPropertySymbols(globalThis).find((one) => one.description?.startsWith("mdello"));
  await globalThis[key]?.flush(4900);
  const timers = process.getActiveResourcesInfo().filter((one) => one === "Timeout");
  return { asked: asked.splice(0), timers: timers.length };
}

for await (const line of createInterface({ input: process.stdin })) {
  const act = JSON.parse(line);
  const hooks = opened.get(act.in ?? last);
  let told = null;
  if (act.know) Object.assign(known, act.know);
  if (act.open) told = await open(act.open);
  if (act.event) told = await call(hooks.event, [{ event: act.event }]);
  if (act.hook) told = await call(hooks[act.hook], act.given);
  if (act.dispose) told = await call(hooks.dispose, []);
  if (act.settle) told = await settle();
  if (act.later) await later(act.later);
  console.log(JSON.stringify(told));
}
