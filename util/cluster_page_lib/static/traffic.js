// Draws the traffic of the cluster from /traffic/series, with the times of jobs shaded behind it.
"use strict";
(function () {
  const plot = window.clusterPlot;
  const words = document.getElementById("graphs-words");
  let jobs = [];

  const shade = function (made) {
    const context = made.ctx;
    const scale = window.devicePixelRatio || 1;
    context.save();
    context.font = 11 * scale + "px system-ui, sans-serif";
    const right = made.bbox.left + made.bbox.width;
    const ends = [];  // of the labels in each line, so that none covers another
    jobs.forEach(function (job) {
      const from = Math.max(made.bbox.left, made.valToPos(job.from, "x", true));
      const to = Math.min(right, job.to ? made.valToPos(job.to, "x", true) : right);
      if (to <= from) { return; }
      context.globalAlpha = 0.15;
      context.fillStyle = plot.colour("odd");
      context.fillRect(from, made.bbox.top, to - from, made.bbox.height);
      const label = job.number + " " + job.name;
      const begin = Math.min(from, right - context.measureText(label).width) + 3 * scale;
      let line = 0;
      while (line < 5 && (ends[line] || 0) > begin) { line += 1; }
      if (line === 5) { return; }
      ends[line] = begin + context.measureText(label).width;
      context.globalAlpha = 1;
      context.fillStyle = plot.colour("odd");
      context.fillText(label, begin, made.bbox.top + (12 + 13 * line) * scale);
    });
    context.restore();
  };

  plot.follow(document.querySelector("[data-cluster-series]").getAttribute("data-cluster-series"), function (found) {
    const data = [found.at, found.in, found.out];
    jobs = found.jobs;
    if (!plot.plots.length) {
      plot.make("graph-cluster", ["in", "out"], data, plot.bytes, plot.rangeOfBytes, { drawClear: [shade] });
    } else {
      plot.plots[0].plot.setData(data);
    }
    const last = found.at.length - 1;
    if (last >= 0 && !words.textContent) {
      words.textContent = "When this page was loaded: " + plot.bytes(found.in[last]) + " in, " + plot.bytes(found.out[last]) + " out; the most in this time: " +
        plot.bytes(Math.max.apply(null, found.in)) + " in.";
    }
  });
})();
