// Tells the user when the page has lost its connection; htmx does everything else, by attributes.
"use strict";
(function () {
  const stale = document.getElementById("stale");
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
