// A small OpenCode: loads a plugin and hands it events and hook calls, as told line by line.
//
// Argument: the plugin. Each line is one act: {"open": FOLDER} calls the plugin for a folder,
// {"event": {...}}, {"hook": NAME, "given": [...]} and {"dispose": true} go to the newest plugin of "in"
// (the last folder that was opened); {"know": {...}} says what the client answers: sessions by id with
// parentID, messages, children, busy; and "pages" (it pages), "mood" (answers, slowly, fails, hangs,
// waits until it changes).
// {"settle": true} waits until the plugin has done and posted everything, and tells what
// it "asked" since the last time, and how many timers hold the process. {"sleep": MS} waits, as does
// {"until": WHAT} for the plugin to ask for something.
// The answer: {"returned" or "threw", "sync" (ms until it returned), "ms", "changed" (what was given)}.
// Waits of 5 s and more pass a hundred times as fast.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const setTimeoutAsItIs = globalThis.setTimeout;
globalThis.setTimeout = (act, ms, ...more) => setTimeoutAsItIs(act, ms >= 5000 ? ms / 100 : ms, ...more);

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
  if (known.mood === "slowly") await new Promise((resolve) => setTimeoutAsItIs(resolve, 20));
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

async function been(what) {
  while (!asked.some((one) => one.what === what)) await new Promise((resolve) => setTimeoutAsItIs(resolve, 1));
}

async function settle() {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
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
  if (act.until) await been(act.until);
  if (act.sleep) await new Promise((resolve) => setTimeoutAsItIs(resolve, act.sleep));
  console.log(JSON.stringify(told));
}
