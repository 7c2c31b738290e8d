// Answers, one JSON line per question, what js-yaml makes of a YAML text.
//
// Question: {"yaml": "..."} or {"card": "<base64 of a card's bytes>"}.
// Answer:   {"ok": true, "value": <as below>} or {"ok": false, "why": "..."}; for a card also
//           "found" (whether there is a front matter) and "uuid" (trimmed, or null).
// Values: null, true, false, a string, ["number", text], ["list", ...], ["map", [key, value], ...].

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { load } = await import(pathToFileURL(process.argv[2]));

const MOST_NODES = 5000; // aliases can make a small text a huge or an endless value

function described(value, parents, budget) {
  if (budget.left-- <= 0) throw new RangeError("too many nodes");
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "number") return ["number", String(value === 0 ? 0 : value)];
  if (typeof value === "string") return value.toWellFormed();
  if (parents.includes(value)) throw new RangeError("contains itself");
  const inside = [...parents, value];
  if (Array.isArray(value)) return ["list", ...value.map((item) => described(item, inside, budget))];
  return ["map", ...Object.entries(value).map(([key, item]) => [key.toWellFormed(), described(item, inside, budget)])];
}

function read(text) {
  let value;
  try {
    value = load(text);
  } catch (error) {
    return { ok: false, why: String(error.reason ?? error.message) };
  }
  try {
    return { ok: true, value: described(value, [], { left: MOST_NODES }), raw: value };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { ok: true, value: "?", raw: value };
  }
}

function card(bytes) {
  const match = /^---\r?\n([\s\S]*?)\r?\n---/.exec(bytes.toString("utf8"));
  if (match === null) return { ok: true, found: false, uuid: null };
  const answer = read(match[1]);
  const data = answer.ok && answer.raw !== null && typeof answer.raw === "object" ? answer.raw : {};
  const uuid = typeof data.uuid === "string" ? data.uuid.trim().toWellFormed() : "";
  return { ...answer, found: true, uuid: uuid === "" ? null : uuid };
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  const answer = "card" in question ? card(Buffer.from(question.card, "base64")) : read(question.yaml);
  delete answer.raw;
  process.stdout.write(JSON.stringify(answer) + "\n");
}
