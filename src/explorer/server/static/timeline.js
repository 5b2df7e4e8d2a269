"use strict";
// Playing the past: the slider moves on, and the page is that of the record.
(() => {
  const slider = document.querySelector("#at");
  const frame = document.querySelector("#then");
  let timer = 0, wanted = 0;
  let isLoading = false;
  // One request at a time: what the slider passed meanwhile is not asked for.
  const show = async () => {
    wanted = Number(slider.value);
    document.querySelector("#at-shown").textContent = wanted;
    if (isLoading) return;
    isLoading = true;
    try {
      for (let at = 0; at !== wanted; ) {
        at = wanted;
        const address = `${location.pathname}?at=${at}`;
        const html = await explorer.ask(address);
        if (!html) return pause();
        const found = new DOMParser().parseFromString(html, "text/html").querySelector("#then");
        if (found) { frame.replaceChildren(...found.childNodes); history.replaceState(null, "", address); }
      }
    } finally { isLoading = false; }
  };
  slider.addEventListener("input", show);
  // It was moved before this script ran, or the browser kept its place.
  if (slider.value !== slider.defaultValue) show();
  const play = document.querySelector("#play");
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
})();
