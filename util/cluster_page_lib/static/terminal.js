// Connects xterm.js with the shell. The policy of the page lets in only styles with its nonce: xterm.js makes some at run time.
"use strict";
(function () {
  const place = document.getElementById("terminal");
  const words = document.getElementById("terminal-words");
  const end = document.getElementById("terminal-end");
  const nonce = document.getElementById("terminal-style").nonce;
  const createElement = document.createElement.bind(document);
  document.createElement = function (name, options) {
    const made = createElement(name, options);
    if (name === "style") { made.nonce = nonce; }
    return made;
  };
  const terminal = new window.Terminal({ cursorBlink: false, fontSize: 14, screenReaderMode: true, scrollback: 5000 });
  const fit = new window.FitAddon.FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  const socket = new WebSocket("wss://" + window.location.host + "/terminal/socket");
  socket.binaryType = "arraybuffer";
  const size = function () { return { rows: terminal.rows, columns: terminal.cols }; };
  const encoder = new TextEncoder();
  const isOpen = function () { return socket.readyState === WebSocket.OPEN; };
  socket.addEventListener("open", function () {
    socket.send(JSON.stringify(Object.assign({ token: place.dataset.token, machine: place.dataset.machine }, size())));
    words.textContent = "Connected.";
    terminal.focus();
  });
  socket.addEventListener("message", function (event) {
    if (typeof event.data === "string") { words.textContent = event.data; } else { terminal.write(new Uint8Array(event.data)); }
  });
  socket.addEventListener("close", function () {
    words.textContent = (words.textContent === "Connected." ? "" : words.textContent + " ") + "The terminal has ended.";
    end.textContent = "New terminal";
  });
  terminal.onData(function (text) { if (isOpen()) { socket.send(encoder.encode(text)); } });
  terminal.onBinary(function (text) { if (isOpen()) { socket.send(Uint8Array.from(text, function (one) { return one.charCodeAt(0); })); } });
  terminal.onResize(function () { if (isOpen()) { socket.send(JSON.stringify(size())); } });
  terminal.attachCustomKeyEventHandler(function (event) {
    if (event.key === "F6" && event.type === "keydown") { end.focus(); return false; }
    return true;
  });
  window.addEventListener("resize", function () { fit.fit(); });
  end.addEventListener("click", function () { if (isOpen()) { socket.close(); } else { window.location.reload(); } });
})();
