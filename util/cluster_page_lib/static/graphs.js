// Draws the graphs of a node by uPlot from /node/NAME/series, and writes the newest values as text for people who do
// not see graphs.
"use strict";
(function () {
  const place = document.querySelector("[data-series]");
  const words = document.getElementById("graphs-words");
  const style = getComputedStyle(document.documentElement);
  const colour = function (name) { return style.getPropertyValue("--" + name).trim(); };
  const colours = ["note", "odd", "good", "warn", "bad", "soft"].map(colour);
  let plots = [];
  let drawn = "";

  const bytes = function (value) {
    if (value === null || value === undefined) { return "-"; }
    const units = ["B/s", "KB/s", "MB/s", "GB/s"];
    let unit = 0;
    while (value >= 1000 && unit < 3) { value /= 1000; unit += 1; }
    return (unit ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
  };
  const clock = function (at) { return new Date(at * 1000).toLocaleTimeString("en-GB", { hour12: false }); };
  const percent = function (value) { return value === null || value === undefined ? "-" : Math.round(value) + " %"; };

  const plot = function (id, names, data, show, range) {
    const box = document.getElementById(id);
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
    const made = new window.uPlot({
      width: Math.max(200, box.clientWidth), height: 180, legend: { live: true }, cursor: { y: false },
      scales: { y: { range: range } },
      axes: [Object.assign({ values: function (_, ticks) { return ticks.map(clock); } }, axis), Object.assign({ size: 74, values: function (_, ticks) { return ticks.map(show); } }, axis)],
      series: [{ value: "{HH}:{mm}:{ss}" }].concat(names.map(function (name, number) {
        return { label: name, stroke: colours[number % colours.length], width: 2, value: function (_, value) { return show(value); } };
      }))
    }, data, box);
    plots.push({ box: box, plot: made });
    return made;
  };

  const draw = function (found) {
    const load = [found.at, found.cpu, found.memory];
    const traffic = [found.at].concat(found.traffic);
    const kind = found.devices.join(" ");
    if (kind !== drawn || !plots.length) {
      plots.forEach(function (entry) { entry.plot.destroy(); });
      plots = [];
      plot("graph-load", ["processor", "memory"], load, percent, [0, 100]);
      plot("graph-traffic", found.devices, traffic, bytes, function (_, low, high) { return [0, Math.max(1000, high || 0)]; });
      drawn = kind;
    } else {
      plots[0].plot.setData(load);
      plots[1].plot.setData(traffic);
    }
    const last = found.at.length - 1;
    if (last >= 0 && !words.textContent) {
      words.textContent = "When this page was loaded: processor " + percent(found.cpu[last]) + ", memory " + percent(found.memory[last]) +
        found.devices.map(function (name, number) { return ", " + name + " " + bytes(found.traffic[number][last]); }).join("");
    }
  };

  const refresh = function () {
    if (document.hidden) { return; }
    fetch(place.getAttribute("data-series"), { headers: { "HX-Request": "true" } }).then(function (answer) {
      return answer.ok && answer.status === 200 ? answer.json() : null;
    }).then(function (found) { if (found) { draw(found); } }).catch(function () { });
  };
  window.addEventListener("resize", function () {
    plots.forEach(function (entry) { entry.plot.setSize({ width: Math.max(200, entry.box.clientWidth), height: 180 }); });
  });
  refresh();
  window.setInterval(refresh, 2000);
})();
