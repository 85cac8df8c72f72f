// Uploads files one after the other; says how far it is.
"use strict";
(function () {
  const form = document.getElementById("upload");
  const words = document.getElementById("upload-words");
  form.addEventListener("submit", async function (event) {
    event.preventDefault();
    const data = form.dataset;
    for (const file of document.getElementById("file").files) {
      words.textContent = file.name + ": " + file.size + " bytes are being sent";
      const path = (data.path ? data.path + "/" : "") + file.name;
      const answer = await fetch(data.to + "?path=" + encodeURIComponent(path),
        { method: "POST", body: file, headers: { "X-Token": data.token, "HX-Request": "true" } }).catch(function () { return null; });
      if (!answer || !answer.ok) {
        const text = answer ? new DOMParser().parseFromString(await answer.text(), "text/html").body.textContent : "no connection";
        words.textContent = file.name + " was not uploaded: " + text.trim();
        return;
      }
    }
    window.location.reload();
  });
})();
