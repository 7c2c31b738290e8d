// What every client of the companion needs: card paths in text and in tool calls, and publishing.
//
// The paths follow the rule of adapters/paths.py; tests/fixtures/paths.json holds it as a table.
// Lengths are counted in UTF-16 units here, which differs only for paths that no system can open.

import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import tls from "node:tls";

const START = /(?<![A-Za-z0-9_.])(?:[A-Za-z]:[\\/]|\/)/g;
const END = /\.md(?![A-Za-z0-9_])/g;
const BREAK = /[\n\r"'`]/g;
const HALF_A_PAIR = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

const MAX_TEXT_CHARS = 4 * 1024 * 1024;
const MAX_MATCHES = 4000;
const MAX_LATER_STARTS = 16;
const MAX_EXTRA_CANDIDATES = 1000;
const MAX_PATH_CHARS = 4096;

const REQUEST_MS = 1000;
const READ_MS = 10;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30000;
const MAX_SESSIONS = 200; // Of one process; the one unused for longest is let go.
const MAX_CARDS = 1000; // Of one session; the oldest is let go.
const MAX_DUE = 5000; // Posts that wait; above it only the newest state of each card.
const MAX_ANSWER_CHARS = 8192;
const TOO_LATE = 408; // The companion had not waited for a post of an agent that was stopped for a while.

let PROCESS = String(process.pid); // Where the system tells, also when it began: others get its number later.
try {
  PROCESS += ` ${fs.readFileSync("/proc/self/stat", "latin1").split(") ").at(-1).split(" ")[19]}`;
} catch {}

/** Where the companion is: a base URL without its trailing slash. */
export function endpointOf(env) {
  return (env.MDELLO_COMPANION_URL || "http://127.0.0.1:51618").replace(/\/$/, "");
}

/** Everything in a text that may be the path of a card, in order, the likely reading of each first. */
export function candidatesInText(text) {
  const found = new Set();
  let matches = 0;
  let extra = 0;
  const searched = text.slice(0, MAX_TEXT_CHARS);
  for (const match of matchesIn(searched)) {
    found.add(searched.slice(match.start, match.end));
    if (extra < MAX_EXTRA_CANDIDATES) {
      const later = laterStarts(searched, match);
      extra += later.length;
      for (const start of later) found.add(searched.slice(start, match.end));
    }
    if (++matches === MAX_MATCHES) break;
  }
  return [...found].filter(canBeCard);
}

/** Whether a path is absolute, short enough, and spelled in characters that a file name can have. */
export function canBeCard(value) {
  const fits = value.startsWith("/") && value.length <= MAX_PATH_CHARS;
  return fits && !value.includes("\0") && !HALF_A_PAIR.test(value);
}

/** The path that a tool call names (absolute, or joined to the folder cwd), or undefined. */
export function toolPath(value, cwd) {
  if (typeof value !== "string" || value.slice(-3).toLowerCase() !== ".md") return undefined;
  if (value.startsWith("/")) return value;
  if (typeof cwd !== "string" || !cwd.startsWith("/")) return undefined;
  return path.posix.join(cwd, value);
}

/** The text of a message: a string as it is, of a list the text of its text blocks, by line. */
export function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts = content.filter((block) => block?.type === "text" && typeof block.text === "string");
  return texts.map((block) => block.text).join("\n");
}

/** All matches of start, body and ".md" from left to right. Nothing is looked at twice: linear. */
function* matchesIn(text) {
  let cursor = 0;
  let broken = -1; // The first break at or behind the place last asked about.
  let end = find(END, text, 0);
  while (end) {
    const start = find(START, text, cursor);
    if (!start) return;
    const body = start.index + start[0].length;
    if (end.index <= body) {
      end = find(END, text, body + 1); // No room for a body.
      continue;
    }
    if (broken < body) broken = find(BREAK, text, body)?.index ?? text.length;
    if (broken < end.index) {
      // This start cannot reach the end, nor can any other in front of the last break.
      cursor = end.index;
      while (!"\n\r\"'`".includes(text[cursor - 1])) cursor--;
      continue;
    }
    cursor = end.index + end[0].length;
    yield { start: start.index, body, dot: end.index, end: cursor };
    end = find(END, text, cursor);
  }
}

/** Where else within a match a path with the same end could begin: those that swallow the least. */
function laterStarts(text, match) {
  const starts = [];
  let from = Math.max(match.body, match.end - MAX_PATH_CHARS);
  for (let start = find(START, text, from); start; start = find(START, text, from)) {
    from = start.index + start[0].length;
    if (from >= match.dot) break;
    starts.push(start.index);
  }
  return starts.slice(-MAX_LATER_STARTS).filter((start) => text[start] === "/");
}

function find(pattern, text, from) {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

/**
 * The publisher of this process. Agents load a client anew for a new session or at a reload; were
 * each to have a queue of its own, an old state that is repeated could overtake a newer one.
 */
export function publisherOf(endpoint, harness) {
  const key = Symbol.for(`mdello publisher 1 ${harness} ${endpoint}`); // The number is that of its shape.
  return (globalThis[key] ??= new Publisher(endpoint, harness));
}

/**
 * Tells the companion what each card's session does. Nothing here throws, waits or prints.
 *
 * While the companion answers, every post goes out, one after the other in the order of its making.
 * When it does not, only the newest state of each card stays due; it is tried again at the next
 * event and after a growing pause, until it gets through.
 */
export class Publisher {
  #url;
  #harness;
  #sessions = new Map();
  #due = new Map(); // In order. The key is the card itself when only its newest state counts.
  #newestOnly = false;
  #busy = false;
  #pauseMs = FIRST_PAUSE_MS;
  #timer;
  #flushes = new Set();

  constructor(endpoint, harness) {
    this.#url = parsed(endpoint);
    this.#harness = harness;
  }

  /** The link of a session, made on first use. The file may become known later. */
  session(sessionId, sessionFile) {
    const link = this.#sessions.get(sessionId) ?? new SessionLink(this, sessionId);
    if (typeof sessionFile === "string" && sessionFile) link.sessionFile = sessionFile;
    this.#sessions.delete(sessionId); // To the end: the order of the map is that of use.
    this.#sessions.set(sessionId, link);
    dropOldest(this.#sessions, MAX_SESSIONS);
    return link;
  }

  /** Let a session go. What is due of it still goes out. */
  forget(sessionId) {
    this.#sessions.delete(sessionId);
  }

  /** Wait until nothing is due, a post has failed, or the time is over; the only wait there is. */
  flush(timeoutMs) {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#flushes.delete(done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs); // Not unref'ed: it holds the process for the posts.
      this.#flushes.add(done);
      this.wake();
    });
  }

  /** Post a card's present state when its turn comes. Of what was no card only the newest counts. */
  publish(card) {
    const entry = { card, status: card.link.status };
    const key = this.#newestOnly || card.ignored ? card : entry;
    this.#due.delete(key);
    this.#due.set(key, entry);
    if (this.#due.size > MAX_DUE) this.#keepNewest();
    this.wake();
  }

  /** Try what is due, unless that is being done already. */
  wake() {
    if (!this.#busy) this.#work().catch(() => {});
  }

  async #work() {
    this.#busy = true;
    clearTimeout(this.#timer);
    let answered = true;
    while (answered && this.#due.size > 0) {
      const [key, entry] = this.#due.entries().next().value;
      const answer = await post(this.#url, this.#body(entry)).catch(() => ({ code: 0 }));
      answered = this.#take(entry.card, answer);
      if (answered && this.#due.get(key) === entry) this.#due.delete(key);
      if (answered && !entry.card.ignored) entry.card.link.confirmed(entry);
    }
    this.#busy = false;
    if (!answered) this.#tryLater();
    for (const done of this.#flushes) done();
  }

  /** Note what came back for a card; false when it has to be tried again. */
  #take(card, answer) {
    if (answer.unsure) card.unsure = true;
    if (answer.code < 200 || answer.code > 499 || answer.code === TOO_LATE) return false;
    card.ignored = answer.ignored;
    this.#newestOnly = false;
    this.#pauseMs = FIRST_PAUSE_MS;
    if (card.unsure) {
      // A post that timed out may still lie at the companion's door, and be taken behind this one.
      card.unsure = false;
      setTimeout(() => this.publish(card), REQUEST_MS).unref();
    }
    return true;
  }

  #tryLater() {
    this.#keepNewest();
    this.#newestOnly = true;
    this.#timer = setTimeout(() => {
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
      this.wake();
    }, this.#pauseMs);
    this.#timer.unref();
  }

  #keepNewest() {
    const newest = new Map();
    for (const entry of this.#due.values()) {
      newest.delete(entry.card);
      newest.set(entry.card, entry);
    }
    dropOldest(newest, MAX_DUE);
    this.#due = newest;
  }

  #body({ card, status }) {
    const { sessionId, sessionFile } = card.link;
    const harness = this.#harness;
    return JSON.stringify({ markdownPath: card.path, harness, sessionId, sessionFile, status });
  }
}

/** One session of the agent: its cards and its status. */
export class SessionLink {
  status = "idle";
  sessionFile;
  #publisher;
  #cards = new Map();

  constructor(publisher, sessionId) {
    this.#publisher = publisher;
    this.sessionId = sessionId;
  }

  /** Publish each new path once with the present status; again one that was no card so far. */
  add(paths) {
    for (const value of paths) {
      if (typeof value !== "string" || !canBeCard(value)) continue;
      const card = this.#cards.get(value) ?? { link: this, path: value, ignored: true, isCard: false, unsure: false };
      if (!card.ignored) continue;
      card.ignored = false;
      this.#keep(card);
      this.#publisher.publish(card);
    }
    this.#publisher.wake();
  }

  /** It is a card. Many that were named with it may have driven it out before that was known. */
  confirmed({ card, status }) {
    card.isCard = true;
    if (this.#cards.has(card.path)) return;
    this.#keep(card);
    if (status !== this.status) this.#publisher.publish(card);
  }

  /** Publish a status, when it is another one, to all cards; last to what was none so far. */
  set(status) {
    if (status !== this.status) {
      this.status = status;
      const cards = [...this.#cards.values()];
      for (const ignored of [false, true]) {
        for (const card of cards) if (card.ignored === ignored) this.#publisher.publish(card);
      }
    }
    this.#publisher.wake();
  }

  /** Of too many the oldest goes: of those that are no cards, else of those that may be, else of all. */
  #keep(card) {
    this.#cards.set(card.path, card);
    if (this.#cards.size <= MAX_CARDS) return;
    const cards = [...this.#cards.values()];
    const oldest = cards.find((one) => one.ignored) ?? cards.find((one) => !one.isCard) ?? cards[0];
    this.#cards.delete(oldest.path);
  }

  /** Let the session go; what is due still goes out. */
  forget() {
    this.#publisher.forget(this.sessionId);
  }
}

function dropOldest(map, most) {
  while (map.size > most) map.delete(map.keys().next().value);
}

function parsed(endpoint) {
  try {
    const url = new URL(endpoint);
    return ["http:", "https:"].includes(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

/**
 * One POST to /associations. Resolves to {code, ignored, unsure}; code 0 is no answer, unsure says
 * that the companion may have got it all the same.
 *
 * On a plain socket: fetch and node:http go through a proxy when the environment names one (Bun
 * always, Node with NODE_USE_ENV_PROXY), and there is no proxy on the way to loopback.
 */
function post(url, body) {
  return new Promise((resolve) => {
    if (!url) return resolve({ code: 400, ignored: true, unsure: false }); // Nobody to tell, ever.
    let answer = "";
    let connected = false;
    const settle = () => {
      clearTimeout(timer);
      socket.destroy();
      const code = Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1] ?? 0);
      resolve({ code, ignored: /"ignored":\s*true/.test(answer), unsure: connected && code === 0 });
    };
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const secure = url.protocol === "https:";
    const servername = net.isIP(host) ? "" : host; // Node prints a warning when an address is named.
    const socket = secure ? tls.connect({ host, port, servername }) : net.connect({ host, port });
    // An agent that was too busy to listen for as long may find the answer waiting: that is read first.
    const late = () => setTimeout(settle, READ_MS).unref();
    const timer = setTimeout(late, REQUEST_MS);
    timer.unref(); // No post keeps the agent's process alive.
    socket.unref();
    socket.setEncoding("utf8");
    socket.on(secure ? "secureConnect" : "connect", () => (connected = true));
    socket.on("data", (text) => (answer = (answer + text).slice(0, MAX_ANSWER_CHARS)));
    socket.on("error", settle);
    socket.on("close", settle);
    socket.on("end", settle);
    const bytes = Buffer.from(body);
    const head = [
      `POST ${url.pathname.replace(/\/$/, "")}/associations HTTP/1.1`,
      `Host: ${url.host}`,
      "Content-Type: application/json",
      `Content-Length: ${bytes.length}`,
      `Mdello-Process: ${PROCESS}`, // An agent that is killed cannot say so: the companion looks.
      "Connection: close",
    ];
    socket.write(Buffer.concat([Buffer.from(head.join("\r\n") + "\r\n\r\n"), bytes]));
  });
}
