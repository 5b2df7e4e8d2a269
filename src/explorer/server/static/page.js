"use strict";
// Keys, folds that load their content, orders, the connection, the clock, title, icon and notification of a run.
// Without this script every page works: folds have links, citations are pages, forms are forms.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Returns the HTML at an address; nothing where it does not come, and the page says why.
  let isMissing = false;
  const ask = async (address) => {
    let words = "The server does not answer. Try again when it is back.";
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        const html = await answer.text();
        if (isMissing && !isCutOff) tell("");
        isMissing = false;
        return html;
      }
      words = await reasonOf(answer);
    } catch {}
    isMissing = true;
    tell(words);
    return "";
  };
  const load = async (place, address) => {
    const html = await ask(address);
    if (html) place.innerHTML = html;
    return Boolean(html);
  };
  globalThis.explorer = { ask, load };

  document.addEventListener("toggle", async (event) => {
    const place = event.target.open && one("[data-load]", event.target);
    if (place && !place.dataset.loaded) {
      place.dataset.loaded = "yes";
      if (!(await load(place, place.dataset.load))) delete place.dataset.loaded;
      else place.dispatchEvent(new Event("explorer:load", { bubbles: true }));
    }
  }, true);

  const isTyping = () => document.activeElement?.matches?.("input, textarea, select");
  const visible = (line) => line.offsetParent !== null;
  let chosen = null;
  const mark = (line) => {
    all(".selected").forEach((other) => other.classList.remove("selected"));
    line?.classList.add("selected");
    chosen = line;
  };
  const move = (step) => {
    const lines = all("[data-line]").filter(visible);
    if (!lines.length) return;
    const before = lines.findIndex((line) => line === chosen || line.id && line.id === chosen?.id);
    const next = lines[Math.min(lines.length - 1, Math.max(0, before + step))] ?? lines[0];
    mark(next);
    (one("summary, a", next) ?? next).focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const open = () => {
    const line = one(".selected");
    const fold = line && one("details", line);
    if (fold) fold.open = !fold.open;
    else if (line) one("a", line)?.click();
  };
  const help = () => { const box = one("#help"); if (box && !box.open) box.showModal(); };
  const search = () => { const field = one("#q") ?? one("#question"); field ? field.focus() : location.assign("/#q"); };
  const keys = {
    "/": search,
    j: () => move(1), k: () => move(-1), o: open, "?": help, s: () => (one("#steer") ?? one("#follow"))?.focus(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { if (isTyping()) document.activeElement.blur(); return; }
    if (isTyping() || event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    const does = keys[event.key];
    if (does) { event.preventDefault(); does(); }
  });
  const button = one("#help-button");
  if (button) { button.hidden = false; button.addEventListener("click", help); }

  // The most that a question may cost, as the form is filled in.
  const cost = one("#max_cost");
  cost?.addEventListener("input", () => {
    const most = Number(cost.dataset.most || Infinity), asked = Number(cost.value || Infinity), shown = one("#worst-usd");
    if (shown) shown.textContent = `$${Math.min(most, asked > 0 ? asked : most).toFixed(2)}`;
  });

  // What is wrong, at the top of the page: the server is gone, or an order was refused.
  const tell = (words) => {
    const place = one("#trouble");
    place.textContent = words;
    place.hidden = !words;
  };

  // Orders are sent from here: a second click sends nothing, and what was written stays when no answer comes.
  const sending = new Set();
  const NO_ANSWER = "The server does not answer. What you wrote is still here; look whether it has arrived before you send it again.";
  const reasonOf = async (answer) => {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = one("main [role=alert]", page);
    return found ? [found, found.nextElementSibling].filter((part) => part && !one("a", part)).map((part) => part.textContent).join(": ")
      : `The server refused it (${answer.status}). Reload the page, and try again.`;
  };
  // What was ordered is shown in its place, and folds stay as they are; what is on another page is opened.
  const showOrdered = async (answer) => {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = ["#part-head", "#part-call", "#part-plan"].map((part) => [one(part), one(part, page)]);
    if (answer.url !== location.href.split("#")[0] || isCutOff || !live?.isConnected || !parts.every(([now, then]) => now && then)) {
      location.assign(answer.url);
      return false;
    }
    parts.forEach(([now, then]) => now.replaceWith(then));
    typed = null;
    tell("");
    follow();
    return true;
  };
  // Returns whether this page is shown on.
  const send = async (form, body) => {
    const late = setTimeout(() => tell("Sending…"), 500);
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
      if (answer.ok) return await showOrdered(answer);
      tell(await reasonOf(answer));
    } catch { tell(NO_ANSWER); } finally { clearTimeout(late); }
    return true;
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target, button = event.submitter;
    if (form.method !== "post") return;
    event.preventDefault();
    if (sending.has(form.action)) return;
    sending.add(form.action);
    const body = new FormData(form, button), isFocused = form.contains(document.activeElement);
    if (button) button.disabled = true;
    if (!(await send(form, body))) return;
    sending.delete(form.action);
    if (button) button.disabled = false;
    if (isFocused && !document.activeElement?.matches("input, textarea")) (form.isConnected ? button : wordField())?.focus({ preventScroll: true });
  });
  // A page that the browser kept is shown again: its orders have been sent, and what is ordered now is new.
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    sending.clear();
    all("input[name=key]").forEach((field) => { field.value = `${Date.now()}-${Math.random()}`; });
    tell("");
    all("button:disabled").forEach((button) => { button.disabled = false; });
  });

  // A browser opens six connections to a server, for all its tabs. So hidden pages have no stream of events, and of the others four.
  // A page without one looks now and then for something new, and connects for as long as it takes to get it.
  const STREAMS = 4, LOOK_MS = 2000, LOOK_HIDDEN_MS = 5000;
  let live = one("#live"), connection = null, isCutOff = false, isCatchingUp = false, isSettling = false, release = null;
  const isFollowed = () => !document.hidden || ["", "running"].includes(one("#part-head")?.dataset.status) || Boolean(one("#part-call")?.dataset.call);
  const liveAddress = () => {
    const address = new URL(live.getAttribute("hx-sse:connect"), location);
    if (connection?.lastEventId) address.searchParams.set("after", connection.lastEventId);
    return address;
  };
  // The locks are common to all pages of the server; where a browser has none, as without TLS, each page has its stream.
  const takeLock = (number) => new Promise((taken) => {
    navigator.locks.request(`explorer-stream-${number}`, { ifAvailable: true }, (lock) => {
      taken(Boolean(lock));
      return lock && new Promise((free) => { release = free; });
    });
  });
  const takePlace = async () => {
    if (!navigator.locks) release = () => {};
    for (let number = 0; number < STREAMS && !release; number++) await takeLock(number);
  };
  const leavePlace = () => { release?.(); release = null; };
  const disconnect = () => {
    if (!live?.isConnected) return;
    live.remove();
    connection?.reader?.cancel();
  };
  const connect = () => {
    const address = liveAddress();
    live = document.createElement("div");
    live.id = "live";
    live.setAttribute("hx-sse:connect", address.pathname + address.search);
    live.setAttribute("hx-swap", "none");
    one("main").prepend(live);
    htmx.process(live);
  };
  const keepLive = async () => {
    if (!live || isSettling) return;
    isSettling = true;
    if (!document.hidden && !release) await takePlace();
    if (document.hidden) leavePlace();
    isSettling = false;
    const isWanted = Boolean(release) || isCatchingUp;
    if (isWanted && !live.isConnected) connect();
    if (!isWanted) disconnect();
  };
  const look = async () => {
    isCatchingUp = false;
    await keepLive();
    if (!live.isConnected && isFollowed()) {
      const address = liveAddress();
      address.searchParams.set("look", "true");
      try {
        const answer = await fetch(address);
        isCatchingUp = answer.status === 200;
        if (answer.ok && isCutOff) { isCutOff = false; tell(""); }
        if (!answer.ok) cutOff(lost(answer.status));
      } catch { cutOff(IS_AWAY); }
      await keepLive();
    }
    setTimeout(look, document.hidden ? LOOK_HIDDEN_MS : LOOK_MS);
  };
  document.addEventListener("visibilitychange", keepLive);
  addEventListener("pagehide", leavePlace);
  addEventListener("pageshow", (event) => { if (event.persisted) { disconnect(); keepLive(); } });
  document.addEventListener("htmx:sse:after:connection", (event) => {
    connection = event.detail.connection;
    if (isCutOff) tell("");
    isCutOff = false;
  });
  // That an order may not have arrived is said until the server is back.
  const cutOff = (words) => {
    isCutOff = true;
    if (words !== IS_AWAY || one("#trouble").textContent !== NO_ANSWER) tell(words);
  };
  const IS_AWAY = "The server does not answer. What you see is from before; this page continues by itself when the server is back.";
  const IS_GONE = "What this page shows is not there any more: it was removed.";
  const IS_CLOSED = "The server asks for its token. Reload this page, and give it.";
  const lost = (status) => ({ 401: IS_CLOSED, 404: IS_GONE })[status] ?? IS_AWAY;
  document.addEventListener("htmx:sse:error", (event) => { cutOff(lost(event.detail.status)); });
  // A first connection that fails, or is refused, is not tried again by htmx.
  const connectAgain = (event) => {
    if (event.target !== live) return;
    cutOff(lost(event.detail.ctx?.response?.status));
    setTimeout(() => { live.remove(); keepLive(); }, 1000);
  };
  document.addEventListener("htmx:error", connectAgain);
  document.addEventListener("htmx:response:error", connectAgain);

  // The clock of a run that is at work: it is the server's, since that of the browser may be wrong.
  const aheadMs = Date.now() - Date.parse(document.body.dataset.now);
  const pad = (number) => String(number).padStart(2, "0");
  setInterval(() => {
    if (isCutOff) return;
    for (const place of all("[data-since]")) {
      const s = Math.max(0, Math.round((Date.now() - aheadMs - Date.parse(place.dataset.since)) / 1000));
      const value = one(".value", place), limit = value.textContent.split(" of ")[1];
      const time = s < 60 ? `${s}s` : s < 3600 ? `${Math.floor(s / 60)}m${pad(s % 60)}s` : `${Math.floor(s / 3600)}h${pad(Math.floor(s / 60) % 60)}m`;
      value.textContent = limit ? `${time} of ${limit}` : time;
    }
  }, 1000);

  // Title, icon and notification follow the status of the run, and the number of runs at work.
  const icon = one('link[rel="icon"]');
  const title = document.title.replace(/^\(\d+\) /, "");
  const drawn = (count) => `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="15" fill="#0a6128"/><text x="16" y="23" font-size="20" font-family="sans-serif" text-anchor="middle" fill="#fff">${count}</text></svg>`)}`;
  const say = (words) => {
    if (window.Notification?.permission === "granted")
      new Notification(`explorer: ${words}`, { body: one("#question-title")?.textContent });
  };
  // A click or a key that was meant for what was here before orders nothing.
  const holdBack = (buttons) => {
    buttons.forEach((button) => { button.disabled = true; });
    setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), 700);
  };
  // The field for words to a run is another one when the run ends, or is resumed: what is typed moves there.
  const wordField = () => one("#steer") ?? one("#follow");
  let typed = null;
  document.addEventListener("htmx:sse:before:message", () => {
    const field = wordField();
    typed = field && { id: field.id, words: field.value, isFocused: field === document.activeElement };
  });
  const moveTyped = () => {
    const field = wordField();
    if (!field || !typed || field.id === typed.id || !(typed.words || typed.isFocused)) return;
    field.value ||= typed.words;
    if (typed.isFocused) field.focus({ preventScroll: true });
    holdBack(all("button", field.form));
  };
  let status = one("#part-head")?.dataset.status, asked, isFollowing = false;
  const follow = () => {
    const now = one("#part-head")?.dataset.status, call = one("#part-call")?.dataset.call;
    const count = Number(one("main [data-at-work]")?.dataset.atWork ?? document.body.dataset.atWork);
    document.title = (count ? `(${count}) ` : "") + (call ? "? " : now === "running" ? "● " : "") + title;
    icon?.setAttribute("href", count ? drawn(Math.min(count, 99)) : "/static/icon.svg");
    // What came has no marks.
    if (chosen && !chosen.isConnected) chosen = document.getElementById(chosen.id);
    if (chosen && !chosen.classList.contains("selected")) mark(chosen);
    if (now && status === "running" && now !== "running") say(now.replace("_", " "));
    if (call && call !== asked) {
      if (isFollowing) say("a call asks for your approval");
      holdBack(all("#part-call button"));
    }
    status = now;
    asked = call;
    isFollowing = true;
    moveTyped();
    isCatchingUp = false;
    keepLive();
  };
  document.addEventListener("htmx:sse:after:message", follow);
  document.addEventListener("submit", (event) => {
    if (event.target.matches(".ask") && window.Notification?.permission === "default") Notification.requestPermission();
  });
  // Before htmx begins: it would connect a page that has no place.
  live?.remove();
  follow();
  if (live) setTimeout(look, LOOK_MS);
})();
