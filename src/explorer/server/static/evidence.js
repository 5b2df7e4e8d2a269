"use strict";
// Evidence: the card of a citation next to the report, the fold of a sentence that an address names, counts that grow.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  const closeCard = () => {
    const card = one("#card");
    if (!card?.hasChildNodes()) return;
    card.replaceChildren();
    card.returnTo?.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.target.matches?.("input, textarea, select")) closeCard();
  });

  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.('.report article a[href*="/citations/"]');
    const card = one("#card");
    if (!link || !card || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    // Of many sentences that cite it, those near this one are shown.
    const before = all(`a[href="${link.getAttribute("href")}"]`, link.closest("article")).indexOf(link);
    if (await explorer.load(card, `${link.getAttribute("href")}?part=true&from=${before + 1}`)) {
      const close = document.createElement("button");
      Object.assign(close, { type: "button", className: "close", textContent: "Close" });
      close.addEventListener("click", closeCard);
      card.prepend(close);
      card.tabIndex = -1;
      card.focus({ preventScroll: true });
      card.returnTo = link;
    }
  });

  // What an address of this page names may be in a fold, which opens then.
  const addressed = () => document.getElementById(location.hash.slice(1));
  const openAddressed = () => { const fold = addressed()?.closest("details:not([open])"); if (fold) fold.open = true; };
  addEventListener("hashchange", openAddressed);
  document.addEventListener("explorer:load", (event) => {
    if (event.target.contains(addressed())) addressed().scrollIntoView();
  });
  openAddressed();

  // The sentences of a long report are looked up part by part, as long as its page is open.
  const lookFurther = async () => {
    const place = one("#verdicts");
    for (let rest; (rest = place && one("[data-further]", place)); ) {
      const focused = all("a", place).indexOf(document.activeElement);
      if (!(await explorer.load(place, rest.dataset.further))) return;
      all("a", place)[focused]?.focus({ preventScroll: true });
    }
  };
  lookFurther();
})();
