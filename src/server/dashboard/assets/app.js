// What pages do by themselves: keep times and bars true, send JSON, tell why an action failed and take it back.
(function () {
  'use strict';

  var told = document.querySelector('meta[name="now"]');
  // Times are the daemon's; this browser's clock may differ.
  var skew = told ? Number(told.content) - Date.now() : 0;

  function span(milliseconds) {
    var seconds = Math.max(0, Math.floor(milliseconds / 1000));
    if (seconds < 90) return seconds + ' s';
    if (seconds < 5400) return Math.floor((seconds + 30) / 60) + ' min';
    if (seconds < 172800) return Math.floor((seconds + 1800) / 3600) + ' h';
    return Math.floor((seconds + 43200) / 86400) + ' d';
  }

  function tick() {
    var now = Date.now() + skew;
    document.querySelectorAll('time[data-at]').forEach(function (time) {
      var left = Number(time.dataset.at) - now;
      var text = (left > 0 ? time.dataset.before : time.dataset.after).replace('{}', span(Math.abs(left)));
      if (time.textContent !== text) time.textContent = text;
    });
    document.querySelectorAll('svg.bar').forEach(function (bar) {
      var from = Number(bar.dataset.from), until = Number(bar.dataset.until);
      var left = Math.max(0, Math.min(100, (until - now) * 100 / Math.max(1, until - from)));
      bar.querySelector('.bar-left').setAttribute('width', left.toFixed(1));
    });
  }
  tick();
  setInterval(tick, 1000);

  var toasts = document.getElementById('toasts');
  function toast(text) {
    if (!toasts) return;
    var shown = document.createElement('p');
    var words = document.createElement('span');
    words.textContent = text;
    var close = document.createElement('button');
    close.type = 'button';
    close.textContent = 'Dismiss';
    close.addEventListener('click', function () { shown.remove(); });
    shown.append(words, close);
    toasts.append(shown);
    while (toasts.children.length > 4) toasts.firstChild.remove();
  }

  // An action that failed did not happen: the control goes back to what the page was made with.
  function takeBack(control) {
    if (control.type === 'checkbox') control.checked = control.defaultChecked;
    if (control.tagName === 'SELECT') {
      Array.prototype.forEach.call(control.options, function (option) { option.selected = option.defaultSelected; });
    }
  }

  function reason(xhr) {
    try {
      return JSON.parse(xhr.responseText).detail;
    } catch (error) {
      return 'the daemon answered ' + xhr.status;
    }
  }

  document.addEventListener('htmx:responseError', function (event) {
    takeBack(event.detail.elt);
    toast('That did not work: ' + reason(event.detail.xhr) + '.');
  });
  document.addEventListener('htmx:sendError', function (event) {
    takeBack(event.detail.elt);
    toast('That did not work: the daemon cannot be reached.');
  });

  var link = document.getElementById('link');
  function linked(state, text) {
    if (!link || link.dataset.link === state) return;
    link.dataset.link = state;
    link.lastElementChild.textContent = text;
  }
  document.addEventListener('htmx:sseOpen', function () { linked('live', 'Live'); });
  document.addEventListener('htmx:sseError', function () { linked('lost', 'Connection lost, trying again'); });

  // A slash goes to the search, as in many tools of this kind.
  document.addEventListener('keydown', function (event) {
    var search = document.querySelector('[data-search]');
    var typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === '/' && search && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
    }
  });

  // With scripts the filter acts as one types; its own submission would load the page anew.
  document.addEventListener('submit', function (event) {
    if (event.target.id === 'filter') event.preventDefault();
  });

  // Another filter begins with its first rows.
  document.addEventListener('input', function (event) {
    var rows = document.querySelector('input[data-rows]');
    if (rows && event.target.form && event.target.form.id === 'filter') rows.value = '';
  }, true);

  // So many rows are shown now; when the list is fetched again, it is fetched as long.
  function settled() {
    tick();
    var rows = document.querySelector('input[data-rows]');
    var body = document.getElementById('tool-rows');
    if (rows && body) rows.value = body.querySelectorAll('tr[data-tool]').length;
  }
  document.addEventListener('htmx:afterSettle', settled);

  if (!window.htmx) return;
  // htmx looks for the former self of everything that has an id, one after the other, which among thousands of rows takes seconds.
  // Rows come whole, so they are put in place at once.
  document.addEventListener('htmx:beforeSwap', function (event) {
    var target = event.detail.target, all = target.id === 'tool-rows';
    if (!event.detail.shouldSwap || !(all || target.classList.contains('more'))) return;
    event.detail.shouldSwap = false;
    var focused = document.activeElement && document.activeElement.id;
    var part = document.createElement('template');
    part.innerHTML = event.detail.xhr.responseText;
    var rows = Array.from(part.content.children);
    if (all) target.replaceChildren.apply(target, rows);
    else target.replaceWith.apply(target, rows);
    rows.forEach(function (row) { htmx.process(row); });
    var again = focused && document.activeElement.id !== focused && document.getElementById(focused);
    if (again) again.focus({ preventScroll: true });
    settled();
  });

  // The daemon takes JSON only. A control that holds the value names its member in `data-member`; an empty value means "inherit".
  htmx.defineExtension('json-body', {
    onEvent: function (name, event) {
      if (name === 'htmx:configRequest' && event.detail.verb !== 'get') {
        event.detail.headers['Content-Type'] = 'application/json';
      }
      return true;
    },
    encodeParameters: function (xhr, parameters, control) {
      var body = {};
      // What is empty is left as it is; "null" resets it.
      parameters.forEach(function (value, key) {
        if (value !== '') body[key] = value === 'null' ? null : key === 'enabled' ? value === 'true' : value;
      });
      var member = control.dataset.member;
      if (member) body[member] = control.type === 'checkbox' ? control.checked : control.value || null;
      return JSON.stringify(body);
    }
  });
})();
