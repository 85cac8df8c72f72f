// Updates the parts of a page in place, tells the user when the page has lost its connection, and asks before what cannot be
// undone; htmx does everything else, by attributes.
"use strict";
(function () {
  const stale = document.getElementById("stale");
  const pause = document.getElementById("pause");
  const isPoll = function (element) { return /^every /.test(element.getAttribute("hx-trigger") || ""); };

  // What names an element among its neighbours.
  const keyOf = function (node) { return node.id || (node.dataset && (node.dataset.node || node.dataset.job)) || ""; };

  // Makes `old` the same as `fresh`, and leaves alone what is the same already: focus, scroll position, selection, a click that has
  // begun, and the place of a screen reader stay.
  const update = function (old, fresh) {
    Array.from(old.attributes).forEach(function (entry) { if (!fresh.hasAttribute(entry.name)) { old.removeAttribute(entry.name); } });
    Array.from(fresh.attributes).forEach(function (entry) {
      if (old.getAttribute(entry.name) !== entry.value) { old.setAttribute(entry.name, entry.value); }
    });
    let here = old.firstChild;
    Array.from(fresh.childNodes).forEach(function (node) {
      const key = keyOf(node);
      let same = here;
      while (key && same && keyOf(same) !== key) { same = same.nextSibling; }
      while (same && here !== same) {
        here = here.nextSibling;
        here.previousSibling.remove();
      }
      if (!same || keyOf(same) !== key || same.nodeName !== node.nodeName) {
        old.insertBefore(node, here);
        return;
      }
      if (node.nodeType === Node.ELEMENT_NODE) { update(same, node); } else if (same.nodeValue !== node.nodeValue) { same.nodeValue = node.nodeValue; }
      here = same.nextSibling;
    });
    while (here) {
      const gone = here;
      here = here.nextSibling;
      gone.remove();
    }
  };

  document.addEventListener("htmx:beforeSwap", function (event) {
    const part = event.detail.target;
    if (!event.detail.shouldSwap || part !== event.detail.requestConfig.elt || !isPoll(part)) { return; }
    event.detail.shouldSwap = false;
    const fresh = document.createElement("template");
    fresh.innerHTML = event.detail.serverResponse;
    update(part, fresh.content.firstElementChild);
    window.htmx.process(part);
  });

  const showPause = function () { pause.setAttribute("aria-pressed", String(window.clusterPaused)); };
  window.clusterPaused = sessionStorage.getItem("paused") === "yes";
  if (pause && document.querySelector("[hx-trigger^=every], [data-series], [data-cluster-series]")) {
    pause.hidden = false;
    showPause();
    pause.addEventListener("click", function () {
      window.clusterPaused = !window.clusterPaused;
      sessionStorage.setItem("paused", window.clusterPaused ? "yes" : "no");
      showPause();
    });
  }
  document.addEventListener("htmx:beforeRequest", function (event) {
    if (window.clusterPaused && isPoll(event.detail.elt)) { event.preventDefault(); }
  });

  const lost = function () { stale.hidden = false; };
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:timeout", lost);
  document.addEventListener("htmx:responseError", function (event) {
    if (event.detail.xhr.status >= 500) { lost(); }
  });
  document.addEventListener("htmx:beforeOnLoad", function (event) {
    if (event.detail.xhr.status < 500) { stale.hidden = true; }
  });
  document.addEventListener("submit", function (event) {
    const button = event.submitter;
    const question = (button && button.getAttribute("data-ask")) || event.target.getAttribute("data-ask");
    if (question && !window.confirm(question)) { event.preventDefault(); }
  });
})();
