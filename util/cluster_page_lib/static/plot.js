// What the graphs of all pages share: colours, units, axes.
"use strict";
window.clusterPlot = (function () {
  const style = getComputedStyle(document.documentElement);
  const colour = function (name) { return style.getPropertyValue("--" + name).trim(); };
  const colours = ["note", "odd", "good", "warn", "bad", "soft"].map(colour);
  const plots = [];

  const bytes = function (value) {
    if (value === null || value === undefined) { return "-"; }
    const units = ["B/s", "KB/s", "MB/s", "GB/s"];
    let unit = 0;
    while (value >= 1000 && unit < 3) { value /= 1000; unit += 1; }
    return (unit ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
  };
  const clock = function (at) { return new Date(at * 1000).toLocaleTimeString("en-GB", { hour12: false }); };

  // A graph in the element `id`, one line for each name. `show` makes text of a value.
  const make = function (id, names, data, show, range, hooks) {
    const box = document.getElementById(id);
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
    const made = new window.uPlot({
      width: Math.max(200, box.clientWidth), height: 180, padding: [10, 32, 0, 0], legend: { live: true }, cursor: { y: false },
      scales: { y: { range: range } }, hooks: hooks || {},
      axes: [Object.assign({ space: 90, values: function (_, ticks) { return ticks.map(clock); } }, axis), Object.assign({ size: 74, values: function (_, ticks) { return ticks.map(show); } }, axis)],
      series: [{ value: "{HH}:{mm}:{ss}" }].concat(names.map(function (name, number) {
        return { label: name, stroke: colours[number % colours.length], width: 2, value: function (_, value) { return show(value); } };
      }))
    }, data, box);
    plots.push({ box: box, plot: made });
    return made;
  };

  const clear = function () { plots.splice(0).forEach(function (entry) { entry.plot.destroy(); }); };
  const rangeOfBytes = function (_, low, high) { return [0, Math.max(1000, high || 0)]; };

  // Asks for new values now and every two seconds while the page is seen and not paused.
  const follow = function (address, draw) {
    let asked = false;
    const refresh = function () {
      if (document.hidden || (asked && window.clusterPaused)) { return; }
      asked = true;
      fetch(address, { headers: { "HX-Request": "true" } }).then(function (answer) {
        return answer.ok && answer.status === 200 ? answer.json() : null;
      }).then(function (found) { if (found) { draw(found); } }).catch(function () { });
    };
    refresh();
    window.setInterval(refresh, 2000);
  };
  window.addEventListener("resize", function () {
    plots.forEach(function (entry) { entry.plot.setSize({ width: Math.max(200, entry.box.clientWidth), height: 180 }); });
  });
  return { bytes: bytes, clear: clear, clock: clock, colour: colour, follow: follow, make: make, plots: plots, rangeOfBytes: rangeOfBytes };
})();
