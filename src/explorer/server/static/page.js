"use strict";
// Keys, folds that load their content, evidence beside the report, the clock, title, icon and notification of a run.
// Without this script every page works: folds have links, citations are pages, forms are forms.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  const load = async (place, address) => {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (answer.ok) place.innerHTML = await answer.text();
    return answer.ok;
  };

  document.addEventListener("toggle", async (event) => {
    const place = event.target.open && one("[data-load]", event.target);
    if (place && !place.dataset.loaded) {
      place.dataset.loaded = "yes";
      if (!(await load(place, place.dataset.load))) delete place.dataset.loaded;
    }
  }, true);

  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.('.report article a[href*="/citations/"]');
    const card = one("#card");
    if (!link || !card || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (await load(card, `${link.getAttribute("href")}?part=true`)) {
      const close = document.createElement("button");
      Object.assign(close, { type: "button", className: "close", textContent: "Close" });
      close.addEventListener("click", closeCard);
      card.prepend(close);
      card.tabIndex = -1;
      card.focus({ preventScroll: true });
      card.returnTo = link;
    } else location.href = link.href;
  });

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
  const closeCard = () => {
    const card = one("#card");
    if (!card?.hasChildNodes()) return;
    card.replaceChildren();
    card.returnTo?.focus();
  };
  const search = () => { const field = one("#q") ?? one("#question"); field ? field.focus() : location.assign("/#q"); };
  const keys = {
    "/": search,
    j: () => move(1), k: () => move(-1), o: open, "?": help, s: () => (one("#steer") ?? one("#follow"))?.focus(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { isTyping() ? document.activeElement.blur() : closeCard(); return; }
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

  // The clock of a run that is at work.
  const pad = (number) => String(number).padStart(2, "0");
  setInterval(() => {
    for (const place of all("[data-since]")) {
      const s = Math.max(0, Math.round((Date.now() - Date.parse(place.dataset.since)) / 1000));
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
      // A click that was meant for what was here before answers nothing.
      const buttons = all("#part-call button");
      buttons.forEach((button) => { button.disabled = true; });
      setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), 700);
    }
    status = now;
    asked = call;
    isFollowing = true;
  };
  document.addEventListener("htmx:sse:after:message", follow);
  document.addEventListener("submit", (event) => {
    if (event.target.matches(".ask") && window.Notification?.permission === "default") Notification.requestPermission();
  });
  follow();

  // Playing the past: the slider moves on, and the page is that of the record.
  const slider = one("#at");
  if (slider) {
    const frame = one("#then");
    let timer = 0, wanted = 0;
    let isLoading = false;
    // One request at a time: what the slider passed meanwhile is not asked for.
    const show = async () => {
      wanted = Number(slider.value);
      one("#at-shown").textContent = wanted;
      if (isLoading) return;
      isLoading = true;
      try {
        for (let at = 0; at !== wanted; ) {
          at = wanted;
          const address = `${location.pathname}?at=${at}`;
          const answer = await fetch(address, { headers: { Accept: "text/html" } });
          if (!answer.ok) return;
          const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#then");
          if (found) { frame.replaceChildren(...found.childNodes); history.replaceState(null, "", address); }
        }
      } finally { isLoading = false; }
    };
    slider.addEventListener("input", show);
    const play = one("#play");
    play.hidden = false;
    const pause = () => { clearInterval(timer); timer = 0; play.textContent = "Play"; };
    play.addEventListener("click", () => {
      if (timer) return pause();
      if (Number(slider.value) >= Number(slider.max)) slider.value = 1;
      play.textContent = "Pause";
      const step = Math.max(1, Math.round(slider.max / 200));
      timer = setInterval(async () => {
        if (Number(slider.value) >= Number(slider.max)) return pause();
        slider.value = Math.min(Number(slider.max), Number(slider.value) + step);
        await show();
      }, 150);
    });
  }
})();
