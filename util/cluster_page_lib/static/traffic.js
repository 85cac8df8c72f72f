// Draws the traffic of the cluster from /traffic/series, with the times of jobs shaded behind it.
"use strict";
(function () {
  const plot = window.clusterPlot;
  const words = document.getElementById("graphs-words");
  let jobs = [];

  // (job, left, right) of each job that is in the graph.
  const seen = function (made) {
    const right = made.bbox.left + made.bbox.width;
    return jobs.map(function (job) {
      return { job: job, from: Math.max(made.bbox.left, made.valToPos(job.from, "x", true)), to: Math.min(right, job.to ? made.valToPos(job.to, "x", true) : right) };
    }).filter(function (part) { return part.to > part.from; });
  };

  const shade = function (made) {
    made.ctx.save();
    made.ctx.globalAlpha = 0.18;
    made.ctx.fillStyle = plot.colour("soft");
    seen(made).forEach(function (part) { made.ctx.fillRect(part.from, made.bbox.top, part.to - part.from, made.bbox.height); });
    made.ctx.restore();
  };

  // Names stand above the lines, and none covers another.
  const rangeWithNames = function (_, low, high) { return [0, Math.max(1000, (high || 0) * 1.5)]; };

  const write = function (made) {
    const context = made.ctx;
    const scale = window.devicePixelRatio || 1;
    const ends = [];
    context.save();
    context.font = 11 * scale + "px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    seen(made).forEach(function (part) {
      const label = part.job.number + " " + part.job.name;
      const width = context.measureText(label).width;
      const begin = Math.max(made.bbox.left, Math.min(part.from + 3 * scale, made.bbox.left + made.bbox.width - width - 3 * scale));
      let line = 0;
      while (line < 5 && ends[line] > begin) { line += 1; }
      if (line === 5) { return; }
      ends[line] = begin + width + 6 * scale;
      const top = made.bbox.top + 15 * line * scale;
      context.fillStyle = plot.colour("card");
      context.fillRect(begin - 2 * scale, top, width + 4 * scale, 14 * scale);
      context.fillStyle = plot.colour("ink");
      context.fillText(label, begin, top + 11 * scale);
    });
    context.restore();
  };

  plot.follow(document.querySelector("[data-cluster-series]").getAttribute("data-cluster-series"), function (found) {
    const data = [found.at, found.in, found.out];
    jobs = found.jobs;
    if (!plot.plots.length) {
      plot.make("graph-cluster", ["in", "out"], data, plot.bytes, rangeWithNames, { drawClear: [shade], draw: [write] });
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
