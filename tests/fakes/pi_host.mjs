// A small Pi: loads an extension and sends it events, as told line by line.
//
// Argument: the extension. Input: {"load": true} makes the next session's runtime, as /new does;
// {"event": {...}, "ctx": {"id", "file", "cwd", "idle", "branch"}} sends one event to the newest
// runtime and awaits its handlers one after the other, as Pi does; {"sleep": MS} waits. The answer: what
// the handlers returned or threw, and how long each took. {"timers": true} counts what holds the process.
// At the end of the input it ends when nothing holds it any more.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const runtimes = [];
let loads = 0;

for (const name of ["unhandledRejection", "uncaughtException"]) {
  process.on(name, (error) => console.error(name, error));
}

async function load(fresh) {
  // Pi before 1.0, and any Pi at /reload, loads the module anew; later ones keep it.
  const url = pathToFileURL(process.argv[2]).href + (fresh ? `?${++loads}` : "");
  const handlers = new Map();
  const on = (name, handler) => handlers.set(name, [...(handlers.get(name) ?? []), handler]);
  await (await import(url)).default({ on });
  runtimes.push(handlers);
  return [...handlers.keys()];
}

function contextOf({ id, file, cwd, idle, branch, stale }) {
  const manager = { getSessionId: () => id, getSessionFile: () => file, getBranch: () => branch ?? [] };
  return {
    cwd,
    isIdle: () => idle,
    get sessionManager() {
      if (stale) throw new Error("This extension ctx is stale");
      return manager;
    },
  };
}

async function send(event, ctx) {
  const answers = [];
  for (const handler of runtimes.at(-1).get(event.type) ?? []) {
    const begun = performance.now();
    let sync;
    try {
      const promise = handler(event, ctx);
      sync = performance.now() - begun;
      answers.push({ returned: (await promise) ?? null, promise: promise !== undefined });
    } catch (error) {
      answers.push({ threw: String(error) });
    }
    Object.assign(answers.at(-1), { sync, ms: performance.now() - begun });
  }
  return answers;
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let answer = null;
  if (asked.load) answer = await load(asked.fresh);
  else if (asked.timers) answer = process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
  else if (asked.sleep) await new Promise((resolve) => setTimeout(resolve, asked.sleep));
  else answer = await send(asked.event, contextOf(asked.ctx ?? {}));
  console.log(JSON.stringify(answer));
}
