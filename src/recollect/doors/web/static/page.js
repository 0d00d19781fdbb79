// The page works without this. With it, parts are swapped in place, the focus stays, and changes are noticed.
"use strict";
(() => {
  const parser = new DOMParser();
  const said = () => document.getElementById("said");
  const PAUSE = 250; // milliseconds without a key, after which a question is asked while it is typed
  let newest = null;
  let asking = 0;
  let typed = false;
  let pause = 0;

  // Of what the server sent, only the main part and the title are taken; it is escaped there.
  async function show(url, options = {}, keep = true, quiet = false) {
    const turn = ++asking;
    const main = document.getElementById("main");
    if (!quiet) main.setAttribute("aria-busy", "true");
    let answer;
    try {
      answer = await fetch(url, { credentials: "same-origin", ...options });
    } catch {
      main.removeAttribute("aria-busy");
      gone();
      return;
    }
    const kind = answer.headers.get("content-type") || "";
    if (!kind.startsWith("text/html")) {
      location.assign(answer.url);
      return;
    }
    const page = parser.parseFromString(await answer.text(), "text/html");
    if (turn !== asking || (options.untouched && typed)) return; // a later question was asked, or typed, meanwhile
    const fresh = page.getElementById("main");
    const focused = keep ? nameOf(document.activeElement) : null;
    const caret = focused && "selectionStart" in document.activeElement ? document.activeElement.selectionStart : null;
    main.replaceWith(document.adoptNode(fresh));
    swapAround(page);
    document.title = page.title;
    if (answer.url !== location.href) history.pushState({}, "", answer.url);
    refocus(focused, caret, keep);
    enhance();
    const heading = document.querySelector("main [role=alert], main [role=status] p, main h2, main h1");
    if (said() && heading && !quiet) said().textContent = heading.textContent.trim();
    newest = null;
    typed = false;
  }

  // The header shows where one is, and the footer has the address as JSON: both follow the address.
  function swapAround(page) {
    for (const name of ["header.top", "body > footer"]) {
      const old = document.querySelector(name);
      const fresh = page.querySelector(name);
      if (old && fresh) old.replaceWith(document.adoptNode(fresh));
    }
    document.body.dataset.changes = page.body.dataset.changes || "";
    document.body.dataset.zone = page.body.dataset.zone || "";
  }

  function nameOf(element) {
    if (!element || element === document.body) return null;
    if (element.id) return "#" + CSS.escape(element.id);
    if (element.name && element.form) {
      const value = element.type === "checkbox" || element.tagName === "BUTTON" ? `[value="${CSS.escape(element.value)}"]` : "";
      return `main [name="${CSS.escape(element.name)}"]${value}`;
    }
    const link = element.closest("a[href]");
    return link ? `a[href="${CSS.escape(link.getAttribute("href"))}"]` : null;
  }

  function refocus(name, caret, keep) {
    const found = name && document.querySelector(name);
    if (found) {
      found.focus({ preventScroll: true });
      if (caret !== null && "selectionStart" in found && found.type !== "checkbox") {
        try { found.setSelectionRange(caret, caret); } catch { /* this kind of field has no caret */ }
      }
    } else {
      document.getElementById("main").focus({ preventScroll: !keep });
      if (!keep) scrollTo(0, 0);
    }
  }

  function ours(url) {
    return url.origin === location.origin && url.pathname.startsWith("/page/") && !url.pathname.startsWith("/page/static/");
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest ? event.target.closest("a[href]") : null;
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.hasAttribute("data-plain") || link.target) return;
    const url = new URL(link.getAttribute("href"), location.href);
    if (!ours(url) || (url.hash && url.pathname === location.pathname)) return;
    event.preventDefault();
    show(url.href, {}, false);
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.hasAttribute("data-plain")) return;
    const url = new URL(form.getAttribute("action") || location.href, location.href);
    if (!ours(url)) return;
    event.preventDefault();
    clearTimeout(pause);
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    if ((form.method || "get").toLowerCase() === "post") {
      show(url.href, { method: "POST", body: fields }, true);
      return;
    }
    for (const [name, value] of [...fields]) if (!value) fields.delete(name);
    url.search = fields.toString();
    show(url.href, {}, form.hasAttribute("data-swap"));
  });

  // A question is asked while it is typed. Only what was found is swapped, so that no key is lost.
  document.addEventListener("input", (event) => {
    typed = true;
    const form = event.target.form;
    if (!form || event.target.id !== "q" || !form.hasAttribute("data-typing")) return;
    clearTimeout(pause);
    pause = setTimeout(() => seek(form), PAUSE);
  });

  async function seek(form) {
    const url = new URL(form.action, location.href);
    const fields = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...fields]) if (!value) fields.delete(name);
    url.search = fields.toString();
    const shown = url.href;
    url.searchParams.set("typing", "1");
    const turn = ++asking;
    let page;
    try {
      const answer = await fetch(url.href, { credentials: "same-origin", headers: { accept: "text/html" } });
      if (!answer.ok) return; // it is asked again with the next key
      page = parser.parseFromString(await answer.text(), "text/html");
    } catch {
      gone();
      return;
    }
    const old = document.getElementById("results");
    const fresh = page.getElementById("results");
    if (turn !== asking || !old || !fresh) return;
    old.replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    history.replaceState({}, "", shown);
    const heading = document.querySelector("#results h2");
    if (said() && heading) said().textContent = heading.textContent.trim();
  }

  document.addEventListener("keydown", (event) => {
    const field = document.getElementById("q");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !field) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    field.focus();
    field.select();
  });

  // The server shows times, and what is today, in the zone of this browser once it knows that.
  async function tellZone() {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const token = document.querySelector('input[name="token"]');
    if (!zone || !token || document.body.dataset.zone === zone) return;
    try {
      const answer = await fetch("/page/zone", { method: "POST", body: new URLSearchParams({ zone, token: token.value }) });
      if (answer.ok && !typed && location.pathname.startsWith("/page/")) show(location.href, { untouched: true }, true, true);
    } catch {
      // the next screen tells it again
    }
  }

  addEventListener("popstate", () => show(location.href, {}, false));

  // Where a choice is changed in a form of filters, it is sent at once.
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (event.target.hasAttribute("data-all")) {
      for (const box of document.querySelectorAll('input[name="id"]')) box.checked = event.target.checked;
      return;
    }
    if (form && event.target.matches("select, .checks input") && (form.hasAttribute("data-swap") || form.classList.contains("place"))) {
      form.requestSubmit();
    }
  });

  function enhance() {
    for (const all of document.querySelectorAll("label.all")) all.hidden = false;
    const again = document.querySelector("[data-again]"); // what is shown goes on
    if (again) setTimeout(() => { if (again.isConnected) show(location.href, {}, true, true); }, 1000);
  }

  // Changes: the number of the journal's newest line is asked for while somebody looks at the page.
  async function look() {
    const address = document.body.dataset.changes;
    if (!address || document.visibilityState !== "visible") return;
    try {
      const answer = await fetch(address, { headers: { accept: "application/json" } });
      if (answer.status === 401) { stale("You were signed out.", "Sign in"); return; }
      if (!answer.ok) return;
      const now = (await answer.json()).newest;
      if (newest !== null && now !== newest) stale("Something was changed meanwhile.", "Show it");
      newest = now;
    } catch {
      gone();
    }
  }

  function gone() {
    stale("The memory does not answer. Start it again with `recollect page`.", "Try again");
  }

  function stale(text, button) {
    if (document.querySelector(".stale")) return;
    const box = document.createElement("div");
    box.className = "stale";
    box.setAttribute("role", "status");
    const words = document.createElement("span");
    words.textContent = text;
    const again = document.createElement("button");
    again.type = "button";
    again.textContent = button;
    again.addEventListener("click", () => { box.remove(); show(location.href, {}, true); });
    box.append(words, again);
    document.getElementById("main").append(box);
  }

  enhance();
  tellZone();
  look();
  setInterval(look, 5000);
  document.addEventListener("visibilitychange", look);
})();
