// Draws the graphs of a node from /node/NAME/series, and writes the newest values as text for people who do not see graphs.
"use strict";
(function () {
  const plot = window.clusterPlot;
  const words = document.getElementById("graphs-words");
  const percent = function (value) { return value === null || value === undefined ? "-" : Math.round(value) + " %"; };
  let drawn = "";

  plot.follow(document.querySelector("[data-series]").getAttribute("data-series"), function (found) {
    const load = [found.at, found.cpu, found.memory];
    const traffic = [found.at].concat(found.traffic);
    const kind = found.devices.join(" ");
    if (kind !== drawn || !plot.plots.length) {
      plot.clear();
      plot.make("graph-load", ["processor", "memory"], load, percent, [0, 100]);
      plot.make("graph-traffic", found.devices, traffic, plot.bytes, plot.rangeOfBytes);
      drawn = kind;
    } else {
      plot.plots[0].plot.setData(load);
      plot.plots[1].plot.setData(traffic);
    }
    const last = found.at.length - 1;
    if (last >= 0 && !words.textContent) {
      words.textContent = "When this page was loaded: processor " + percent(found.cpu[last]) + ", memory " + percent(found.memory[last]) +
        found.devices.map(function (name, number) { return ", " + name + " " + plot.bytes(found.traffic[number][last]); }).join("");
    }
  });
})();
