// mdello for OpenCode: tells the companion which cards each session works on, and what it is doing.
// OpenCode loads this file as a plugin. It only listens: it changes no input and no tool, prints
// nothing, and does without the companion when there is none. MDELLO_COMPANION_URL says where that is.
//
// OpenCode calls every function that is exported as a plugin, so there is one, and nothing else.

import { candidatesInText, endpointOf, publisherOf, textOf, toolPath } from "../client/companion.js";

const DISPOSE_MS = 3000; // For a companion that answers slowly; one that hangs costs its 1 s, when OpenCode ends.
const ASK_MS = 5000; // For one answer of OpenCode about a session.
const DOUBT_MS = 10000; // From a prompt to the first sign of work; a cold start takes some seconds.
const PAGE = 100; // Messages in one answer.
const MAX_PAGES = 100;
const MAX_KNOWN = 500; // Sessions of one process; the one unused for longest is let go.
const MAX_HELD = 1000; // Acts, and cards, of a session whose root is not known yet.

// Of the whole process: a server calls the plugin once per directory, and loads this file once.
const sessions = new Map();

export const MdelloCompanion = async ({ client, directory }) => {
  const publisher = publisherOf(endpointOf(process.env), "opencode");
  const instance = { client, directory, publisher, over: false };

  const listen = (act) => async (...given) => {
    try {
      if (!instance.over) act(...given);
    } catch {
      // Whatever OpenCode hands over, its work goes on.
    }
  };
  const session = (id) => sessionOf(instance, id)?.active();

  return {
    event: listen(({ event }) => onEvent(instance, event)),

    "chat.message": listen(({ sessionID }, { parts }) => {
      session(sessionID)?.prompted(pathsOfUser(parts));
    }),

    "tool.execute.before": listen(({ tool, sessionID, callID }) => {
      const asking = tool === "question" ? callKey(callID) : undefined;
      session(sessionID)?.works(asking);
    }),

    "tool.execute.after": listen(({ tool, sessionID, callID, args }, output) => {
      if (tool === "question") session(sessionID)?.answered(callKey(callID));
      const paths = pathsOfEdit(tool, args, output?.metadata, directory);
      if (paths.length > 0) session(sessionID)?.add(paths);
    }),

    dispose: async () => {
      listen(close)(instance);
      await publisher.flush(DISPOSE_MS);
    },
  };
};

function onEvent(instance, { type, properties }) {
  const id = properties?.sessionID ?? properties?.info?.id ?? properties?.part?.sessionID;
  const session = () => sessionOf(instance, id)?.active();
  const known = sessions.get(id);
  switch (type) {
    case "session.created":
      return known ?? sessionOf(instance, id, properties.info?.parentID ?? "")?.begins();
    case "session.status":
      if (properties.status?.type === "idle") return known?.settled();
      if (["busy", "retry"].includes(properties.status?.type)) session()?.works();
      return;
    case "session.idle":
      return known?.settled();
    case "session.error":
      return session()?.settled(true);
    case "session.deleted":
      return known?.end();
    case "permission.asked":
    case "permission.updated": // Its name in older versions.
      return session()?.works(properties.id, properties.id);
    case "question.asked": {
      const call = properties.tool?.callID;
      return session()?.works(call ? callKey(call) : properties.id, properties.id);
    }
    case "permission.replied":
    case "question.replied":
    case "question.rejected":
      return known?.replied(properties.requestID ?? properties.permissionID);
    case "message.part.delta":
      return known?.busy ? undefined : known?.works();
    case "message.part.updated":
      return known?.sees(properties.part ?? {});
    case "server.instance.disposed":
      if ([undefined, instance.directory].includes(properties?.directory)) close(instance);
  }
}

/** OpenCode is done with a directory: its sessions are closed, those of others go on. */
function close(instance) {
  instance.over = true;
  for (const session of [...sessions.values()].filter((one) => one.instance === instance)) {
    session.end();
    sessions.delete(session.id); // Should it come back, it will be in another instance.
  }
}

/** The session of an id; undefined when that is none. Its parent is asked for unless told. */
function sessionOf(instance, id, parentId) {
  if (typeof id !== "string" || id === "") return undefined;
  const known = sessions.get(id);
  const session = known ?? new Session(instance, id);
  session.instance = instance;
  for (const one of new Set([session.root ?? session, session])) {
    sessions.delete(one.id); // To the end: the order of the map is that of use.
    sessions.set(one.id, one);
  }
  if (!known) session.belongTo(parentId);
  while (sessions.size > MAX_KNOWN) {
    const [oldest] = sessions.values();
    sessions.delete(oldest.id);
    oldest.leave();
  }
  return session;
}

/**
 * One session of OpenCode. A sub-agent's session is the child of another: its cards and what it does
 * count for the one at the root, which alone the companion knows.
 */
class Session {
  root; // Unknown until OpenCode has answered, when we were not there as the session began.
  gone = false;
  busy = false;
  #link; // Of a root.
  #family = new Set(); // Of a root: itself and all below.
  #rest = "idle"; // Of a root: its status when nobody in the family is busy.
  #waits = new Map(); // What the user is asked: the id of the request, by call or by that id.
  #held = []; // What happened before the root was known, and the cards.
  #cards = [];
  #new = false;
  #restored;
  #doubt;

  constructor(instance, id) {
    this.instance = instance;
    this.id = id;
  }

  /** Find the root. The parent's id is empty for a root, and undefined when it has to be asked for. */
  belongTo(parentId) {
    if (parentId !== undefined) return this.#join(parentId);
    parentOf(this).then((id) => this.#join(id)).catch(() => {});
  }

  /** It begins before our eyes. */
  begins() {
    this.#new = true;
  }

  /** There is activity: time to read what happened in this session before we were there. */
  active() {
    this.restored();
    return this;
  }

  /** Read it, once. Never rejects. */
  restored() {
    return (this.#restored ??= restore(this, this.#new).catch(() => {}));
  }

  /** A user's prompt came in, which names these paths. */
  prompted(paths) {
    if (!this.busy) {
      // It may be a note that wants no answer (noReply): then nothing else follows.
      this.#believe();
      this.#doubt = setTimeout(() => this.#verify().catch(() => {}), DOUBT_MS);
      this.#doubt.unref?.();
    }
    this.busy = true;
    this.#show();
    this.add(paths);
  }

  /** A sign of work; waiting for the user is one too. wait: its key, request: the id of the question. */
  works(wait, request) {
    this.#believe();
    this.busy = true;
    if (wait !== undefined) this.#waits.set(wait, request ?? this.#waits.get(wait));
    this.#show();
  }

  /** The user has answered, or the call that asked has ended. */
  answered(wait) {
    if (this.#waits.delete(wait)) this.#show();
  }

  replied(request) {
    for (const [wait, id] of this.#waits) if (id === request) this.answered(wait);
  }

  /** Of the parts of messages: a step begins, or a question has ended in whichever way. */
  sees({ type, tool, callID, state }) {
    if (type === "step-start" && !this.busy) this.works();
    if (tool === "question" && ["completed", "error"].includes(state?.status)) this.answered(callKey(callID));
  }

  /**
   * The work is over. After an error or an abort OpenCode says so twice, so the second time, or where
   * there was no work, it means nothing; of a prompt in between it is true: that stays unanswered.
   */
  settled(always) {
    this.#believe();
    const worked = this.busy || this.#waits.size > 0;
    this.busy = false;
    this.#waits.clear(); // No answer comes any more to what was asked.
    this.#act((root) => {
      if (worked || (always && root === this)) root.#rest = "ready_for_review";
      root.#tell();
    });
  }

  /** Publish cards of the family. */
  add(paths) {
    if (!this.root) this.#cards = this.#cards.concat(paths).slice(0, MAX_HELD);
    else if (!this.root.gone) this.root.#link.add(paths);
  }

  /** Deleted, or OpenCode ends. */
  end() {
    this.#believe();
    this.gone = true;
    this.leave();
    if (this.root !== this) return;
    this.#link.set("closed");
    this.#link.forget();
  }

  /** A sub-agent that is not known any more holds its parent up no longer. */
  leave() {
    if (this.root === this || !this.root?.#family.delete(this)) return;
    this.root.#tell();
  }

  #join(parentId) {
    if (this.gone) return; // Its parent is not asked for, either.
    const parent = parentId ? sessionOf(this.instance, parentId) : undefined;
    if (parent) return parent.#act((root) => this.#found(root));
    this.#link = this.instance.publisher.session(this.id);
    this.#found(this);
  }

  #found(root) {
    this.root = root;
    root.#family.add(this);
    for (const act of this.#held.splice(0)) act(root);
    this.add(this.#cards.splice(0)); // Last: with the status of now, whatever came before.
  }

  /** Do something with the root, in order, as soon as it is known. */
  #act(act) {
    if (this.root) act(this.root);
    else if (this.#held.length < MAX_HELD) this.#held.push(act);
  }

  #show() {
    this.#act((root) => root.#tell());
  }

  #tell() {
    if (this.gone) return;
    const family = [...this.#family];
    if (family.some((one) => one.#waits.size > 0)) this.#link.set("waiting_for_input");
    else this.#link.set(family.some((one) => one.busy) ? "running" : this.#rest);
  }

  #believe() {
    clearTimeout(this.#doubt);
    this.#doubt = undefined;
  }

  async #verify() {
    const doubt = this.#doubt;
    const { data } = await within(ASK_MS, this.instance.client.session.status());
    // There may have been a sign of work before the answer came.
    if (data && !(this.id in data) && this.#doubt === doubt) {
      this.busy = false;
      this.#show();
    }
  }
}

const callKey = (callId) => `call ${callId}`;

/** The parent's id, or an empty string. */
async function parentOf({ id, instance }) {
  try {
    const { data } = await within(ASK_MS, instance.client.session.get({ path: { id } }));
    return typeof data?.parentID === "string" ? data.parentID : "";
  } catch {
    return "";
  }
}

/** Publish what an earlier process did in a session, and its sub-agents. */
async function restore(session, isNew) {
  const { client, directory } = session.instance;
  const messages = (query) => within(ASK_MS, client.session.messages({ path: { id: session.id }, query }));
  let before;
  for (let page = 0; page < MAX_PAGES; page++) {
    let { data, response } = await messages({ limit: PAGE, before });
    before = response?.headers?.get("x-next-cursor");
    // Versions that do not page have the limit all the same.
    if (page === 0 && !before && data?.length === PAGE) ({ data } = await messages({}));
    if (session.gone) return; // A folder that is disposed of would open again to answer.
    if (!Array.isArray(data)) break;
    session.add(pathsIn(data, directory));
    if (!before) break;
  }
  if (isNew) return; // All its sub-agents are yet to come.
  const { data } = await within(ASK_MS, client.session.children({ path: { id: session.id } }));
  if (session.gone) return;
  // One after the other: they can be many, and long.
  for (const { id } of Array.isArray(data) ? data : []) {
    await sessionOf(session.instance, id, session.id)?.restored();
    if (session.gone) return;
  }
}

function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer")), ms);
    timer.unref?.();
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** What messages name: the user's texts first, then what was edited or written for sure. */
function pathsIn(messages, directory) {
  const named = [];
  const edited = [];
  for (const { info, parts } of messages) {
    if (info?.role === "user") named.push(...pathsOfUser(parts));
    const calls = (Array.isArray(parts) ? parts : []).filter((part) => part?.type === "tool");
    for (const { tool, state } of calls) {
      if (state?.status !== "completed") continue;
      edited.push(...pathsOfEdit(tool, state.input, state.metadata, info?.path?.cwd ?? directory));
    }
  }
  return [...named, ...edited];
}

/** What a user's message names: paths in what was typed, and files that were attached by name. */
function pathsOfUser(parts) {
  const typed = (Array.isArray(parts) ? parts : []).filter((part) => part && !part.synthetic);
  return [...candidatesInText(textOf(typed)), ...typed.map(pathOfFile)];
}

function pathOfFile({ type, url }) {
  try {
    const { protocol, pathname } = type === "file" ? new URL(url) : {};
    return protocol === "file:" ? toolPath(decodeURIComponent(pathname)) : undefined;
  } catch {
    return undefined;
  }
}

/** What a successful call changed. Some models have one tool in the place of edit and write. */
function pathsOfEdit(tool, args, metadata, directory) {
  if (tool === "edit" || tool === "write") return [toolPath(args?.filePath, directory)];
  if (tool !== "apply_patch" || !Array.isArray(metadata?.files)) return [];
  const left = metadata.files.filter((file) => file && file.type !== "delete");
  return left.map((file) => toolPath(file.movePath || file.filePath, directory));
}
