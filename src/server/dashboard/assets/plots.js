// The plot on a scenario's page: latencies, with the values under the pointer and a zoom by
// dragging. Its data comes with the part of the page that is fetched again (`#latencies`), so the
// plot itself stays, and with it the zoom.
(function () {
  'use strict';
  var card = document.getElementById('latency');
  if (!card || !window.uPlot) return;
  var place = card.querySelector('.plot'), told = document.getElementById('latency-told'), plot = null, closer = false;

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function list(text) { return text ? text.split(',').map(Number) : []; }
  function data() {
    var source = document.getElementById('latencies');
    return source ? [list(source.dataset.at), list(source.dataset.took)] : [[], []];
  }
  function axis(more) {
    var line = { stroke: colour('--line'), width: 1 };
    return Object.assign({ stroke: colour('--quiet'), grid: line, ticks: line }, more);
  }
  function tell(shownBy) {
    var from = shownBy.scales.x.min, to = shownBy.scales.x.max, times = shownBy.data[0];
    var shown = times.filter(function (time) { return time >= from && time <= to; }).length;
    told.textContent = (shown === times.length ? 'All ' + times.length : shown + ' of the latest ' + times.length) + ' answers are shown.';
  }
  function draw() {
    if (plot) plot.destroy();
    closer = false;
    plot = new uPlot({
      width: place.clientWidth, height: 190, cursor: { y: false, points: { size: 7 } }, legend: { live: true },
      series: [{ label: 'Answered', value: '{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}' }, {
        label: 'Took', stroke: colour('--accent'), width: 1.5, points: { show: true, size: 4 },
        value: function (self, took) { return took == null ? '--' : took + ' ms'; }
      }],
      axes: [axis({}), axis({ size: 64, values: function (self, marks) { return marks.map(function (mark) { return mark + ' ms'; }); } })],
      scales: { y: { range: function (self, low, high) { return [0, Math.max(1, high * 1.1)]; } } },
      hooks: {
        setSelect: [function (self) { if (self.select.width > 0) closer = true; }],
        setScale: [function (self, key) { if (key === 'x') tell(self); }]
      }
    }, data(), place);
    // uPlot resets the zoom at a double click.
    plot.over.addEventListener('dblclick', function () { closer = false; });
  }
  function renew() {
    var now = data();
    card.hidden = now[0].length < 2;
    if (card.hidden) return;
    if (!plot) return draw();
    plot.setData(now, !closer);
    // The scale stays when all new answers came within the last second, and while the plot is
    // zoomed.
    tell(plot);
  }
  renew();
  document.addEventListener('htmx:afterSettle', renew);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', function () { if (plot) draw(); });
  new ResizeObserver(function () { if (plot && place.clientWidth > 0) plot.setSize({ width: place.clientWidth, height: 190 }); }).observe(place);
})();
