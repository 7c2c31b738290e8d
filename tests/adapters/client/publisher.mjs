// Drives a Publisher. Arguments: the module, the endpoint. Each input line is {"do": ..., ...}; the
// answer has the milliseconds that the call took, before its promise and with it.
// At the end of the input nothing is awaited: only what holds the process alive would do so.

import { createInterface } from "node:readline";

const { Publisher } = await import(process.argv[2]);
const publisher = new Publisher(process.argv[3], "pi");

const acts = {
  add: ({ session, file, paths }) => publisher.session(session, file).add(paths),
  set: ({ session, file, status }) => publisher.session(session, file).set(status),
  many: ({ session, count }) => {
    for (let n = 0; n < count; n++) publisher.session(session).set(n % 2 ? "running" : "idle");
  },
  sessions: ({ count }) => {
    for (let n = 0; n < count; n++) publisher.session(`s${n}`).add([`/b/${n}.md`]);
  },
  forget: ({ session }) => publisher.session(session).forget(),
  flush: ({ ms }) => publisher.flush(ms),
  sleep: ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms)),
};

for (const name of ["unhandledRejection", "uncaughtException"]) {
  process.on(name, (error) => console.error(name, error));
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const begun = performance.now();
  const done = acts[asked.do](asked);
  const sync = performance.now() - begun;
  await done;
  console.log(JSON.stringify({ sync, ms: performance.now() - begun }));
}
