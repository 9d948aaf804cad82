// What pages do by themselves: update times and bars, send JSON, show why an action failed and undo it in the page.
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
  function toast(text, kind) {
    if (!toasts) return;
    var shown = document.createElement('p');
    if (kind) shown.className = kind;
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

  document.addEventListener('click', function (event) {
    var button = event.target.closest ? event.target.closest('[data-copy]') : null;
    var source = button && document.getElementById(button.dataset.copy);
    if (!source) return;
    // Browsers let pages copy only over TLS and on this machine; elsewhere the text is selected.
    if (navigator.clipboard) {
      navigator.clipboard.writeText(source.textContent).then(function () { toast('Copied.'); });
    } else {
      getSelection().selectAllChildren(source);
      toast('The text is selected: copy it.');
    }
  });

  // A failed action changed nothing, so the control gets back the value that the page was rendered
  // with.
  function takeBack(control) {
    if (control.type === 'checkbox') control.checked = control.defaultChecked;
    if (control.tagName === 'SELECT') {
      Array.prototype.forEach.call(control.options, function (option) { option.selected = option.defaultSelected; });
    }
  }

  function reason(xhr) {
    try {
      // A next step that names a route of the API is for programs: the page has a button for it.
      return JSON.parse(xhr.responseText).detail.replace(/; [^;]*`(GET|POST|PUT|DELETE) [^;]*$/, '');
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

  // The operator's token. Only this tab keeps it: a cookie would be sent to every port of this
  // host.
  var TOKEN = 'operator-token', operator = document.getElementById('operator');
  function token(text) {
    try {
      if (text === undefined) return sessionStorage.getItem(TOKEN);
      if (text) sessionStorage.setItem(TOKEN, text); else sessionStorage.removeItem(TOKEN);
    } catch (error) { /* A browser may be told to keep nothing. */ }
    return text;
  }
  function operates(words) {
    if (operator) document.getElementById('operator-told').textContent = words;
  }
  if (operator) {
    if (token()) operates('This tab sends a token with every action, on every page.');
    operator.addEventListener('submit', function (event) {
      event.preventDefault();
      var text = operator.elements.token.value.trim();
      operator.reset();
      if (!/^[\x21-\x7e]+$/.test(text)) return operates('This is not a token: tokens have only visible ASCII characters.');
      token(text);
      operates('This tab sends that token with every action, on every page, until it is closed.');
    });
    operator.querySelector('[data-forget]').addEventListener('click', function () {
      token('');
      operates('Forgotten. Write the token again before the next action that needs it.');
    });
  }
  document.addEventListener('htmx:configRequest', function (event) {
    // Reads need it too: the page Calls shows questions to callers to operators only.
    var text = token();
    if (text) event.detail.headers.Authorization = 'Bearer ' + text;
  });
  document.addEventListener('htmx:responseError', function (event) {
    if (event.detail.xhr.status !== 401) return;
    operates(token() ? 'That is not the token: write the right one.' : 'Write the token first.');
    token('');
    if (operator) operator.elements.token.focus();
  });

  var link = document.getElementById('link');
  function linked(state, text) {
    if (!link || link.dataset.link === state) return;
    link.dataset.link = state;
    link.lastElementChild.textContent = text;
  }
  // Without scripts the page says that it stays as it is.
  if (link && link.dataset.link === 'none') linked('connecting', 'Connecting');
  document.addEventListener('htmx:sseOpen', function () { linked('live', 'Live'); });
  document.addEventListener('htmx:sseError', function () { linked('lost', 'Connection lost, trying again'); });

  // The key `/` focuses the search, as in many tools of this kind. Only a text field needs it itself.
  document.addEventListener('keydown', function (event) {
    var search = document.querySelector('[data-search]');
    var typing = event.target.matches('textarea, input:not([type=checkbox], [type=radio], [type=file])');
    if (event.key === '/' && search && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
    }
  });

  // With scripts the filter acts while the user types; its submission would reload the page.
  document.addEventListener('submit', function (event) {
    if (event.target.id === 'filter') event.preventDefault();
  });

  // A changed filter begins with its first rows.
  document.addEventListener('input', function (event) {
    var rows = document.querySelector('input[data-rows]');
    if (rows && event.target.form && event.target.form.id === 'filter') rows.value = '';
  }, true);

  // Ticks stay when rows are fetched again, as long as their tools are shown.
  var ticked = new Set();
  // Above this number of tools the page asks for confirmation.
  var MANY = 20;
  function picks() { return Array.from(document.querySelectorAll('.many input.pick')); }
  function matching() {
    var all = document.getElementById('tick-matching');
    return all && all.checked ? Number(all.value) : 0;
  }
  function tell() {
    var words = document.getElementById('ticked');
    if (!words) return;
    var number = matching() || ticked.size;
    words.textContent = number === 0 ? 'No tool is ticked' : number === 1 ? '1 tool is ticked' : number + ' tools are ticked';
    var shown = picks(), all = document.getElementById('tick-shown');
    if (all) all.checked = shown.length > 0 && shown.every(function (pick) { return pick.checked; });
  }
  function retick(forget) {
    var shown = picks();
    if (forget) {
      var there = new Set(shown.map(function (pick) { return pick.value; }));
      ticked.forEach(function (id) { if (!there.has(id)) ticked.delete(id); });
    }
    shown.forEach(function (pick) { pick.checked = ticked.has(pick.value); });
    tell();
  }
  document.addEventListener('change', function (event) {
    var box = event.target;
    if (box.id === 'tick-shown') picks().forEach(function (pick) { box.checked ? ticked.add(pick.value) : ticked.delete(pick.value); });
    else if (box.classList.contains('pick')) box.checked ? ticked.add(box.value) : ticked.delete(box.value);
    else if (box.id !== 'tick-matching') return;
    retick(false);
  });
  document.addEventListener('htmx:confirm', function (event) {
    var form = event.target;
    if (form.id !== 'bulk') return;
    var number = matching() || ticked.size;
    var scope = document.querySelector('#filter [name=scope]').value;
    var words = form.elements.change.selectedOptions[0].textContent;
    event.preventDefault();
    if (number === 0) toast('Tick the tools first.');
    else if (number <= MANY || confirm(number + ' tools of ' + scope + ': ' + words + '?')) event.detail.issueRequest(true);
  });
  document.addEventListener('htmx:afterRequest', function (event) {
    if (event.target.id !== 'bulk' || !event.detail.successful) return;
    toast(JSON.parse(event.detail.xhr.responseText).told, 'done');
    ticked.clear();
    var all = document.getElementById('tick-matching');
    if (all) all.checked = false;
    retick(false);
  });

  document.addEventListener('htmx:afterRequest', function (event) {
    if (event.target.id !== 'prefer' || !event.detail.successful) return;
    var summary = JSON.parse(event.detail.xhr.responseText).summary;
    if (summary) toast('Set: ' + summary + '.', 'done');
  });

  document.addEventListener('htmx:afterRequest', function (event) {
    if (event.target.id !== 'add-scenario' || !event.detail.successful) return;
    toast(JSON.parse(event.detail.xhr.responseText).message, 'done');
    event.target.reset();
  });

  document.addEventListener('htmx:beforeRequest', function (event) {
    var button = event.detail.elt;
    if (/^refresh-/.test(button.id)) button.textContent = 'Polling';
  });
  document.addEventListener('htmx:afterRequest', function (event) {
    var button = event.detail.elt;
    if (!/^refresh-/.test(button.id)) return;
    button.textContent = 'Refresh';
    if (!event.detail.successful) return;
    var health = JSON.parse(event.detail.xhr.responseText);
    if (health.failures_in_a_row > 0) toast(health.name + ' gave no good answer: ' + (health.last_error ? health.last_error.message : health.reason) + '.');
    else toast(health.name + ' answered with ' + (health.tools.offered === 1 ? '1 tool.' : health.tools.offered + ' tools.'), 'done');
  });

  // The answer to a call from a tool's page, also to one that was refused. It is indented where that
  // loses no digit.
  document.addEventListener('htmx:afterRequest', function (event) {
    var shown = document.getElementById('tried');
    if (event.target.id !== 'try-tool' || !shown) return;
    var text = event.detail.xhr.responseText;
    try {
      var answer = JSON.parse(text);
      if (JSON.stringify(answer) === text) text = JSON.stringify(answer, null, 2);
    } catch (error) { /* It is shown as it came. */ }
    shown.firstElementChild.textContent = text || 'no answer';
    shown.hidden = false;
  });

  // A file is sent as it is, so its options stand in the query.
  function archived(form) { return form && form.id === 'import-archive'; }
  document.addEventListener('htmx:configRequest', function (event) {
    if (archived(event.target) && event.target.elements.new.checked) event.detail.path += '?new=true';
  });
  document.addEventListener('htmx:afterRequest', function (event) {
    if (!archived(event.target) || !event.detail.successful) return;
    var stored = JSON.parse(event.detail.xhr.responseText);
    toast('Imported ' + stored.bundle.displayName + ' with ' + (stored.tools === 1 ? '1 tool.' : stored.tools + ' tools.'), 'done');
    event.target.reset();
    htmx.trigger('#bundles', 'imported');
  });

  // The number of rows that are shown now; when the list is fetched again, it is fetched with as
  // many.
  function settled() {
    tick();
    var rows = document.querySelector('input[data-rows]');
    var body = document.getElementById('tool-rows');
    if (rows && body) rows.value = body.querySelectorAll('tr[data-tool]').length;
    retick(false);
  }
  document.addEventListener('htmx:afterSettle', settled);

  // Boxes that were opened stay open when their part is fetched again.
  document.addEventListener('htmx:beforeSwap', function (event) {
    var part = event.detail.target;
    part.opened = Array.from(part.querySelectorAll('details[id][open]'), function (box) { return box.id; });
  });
  document.addEventListener('htmx:afterSettle', function (event) {
    var part = event.detail.target;
    (part && part.opened || []).forEach(function (id) {
      var box = document.getElementById(id);
      if (box) box.open = true;
    });
    if (part) part.opened = [];
  });

  if (!window.htmx) return;
  // A hidden page closes its event streams: browsers open at most six connections to a host, and as
  // many open pages would leave none. When the page is visible again, it gets the changes since it
  // was rendered. For htmx this is one event source all the time.
  function Follower(url) {
    var self = this, listeners = [], source = null, over = false;
    function open() {
      if (source || over || document.hidden) return;
      source = new EventSource(url);
      source.onopen = function (event) { if (self.onopen) self.onopen(event); };
      source.onerror = function (event) {
        // Closed for good: htmx opens another one.
        over = source.readyState === EventSource.CLOSED;
        if (self.onerror) self.onerror(event);
      };
      listeners.forEach(function (one) { source.addEventListener(one[0], one[1]); });
    }
    function pause() {
      if (!source || over) return;
      source.close();
      source = null;
      linked('paused', 'Paused');
    }
    this.addEventListener = function (name, listener) {
      listeners.push([name, listener]);
      if (source) source.addEventListener(name, listener);
    };
    this.removeEventListener = function (name, listener) {
      listeners = listeners.filter(function (one) { return one[0] !== name || one[1] !== listener; });
      if (source) source.removeEventListener(name, listener);
    };
    this.close = function () { over = true; if (source) source.close(); };
    Object.defineProperty(this, 'readyState', { get: function () { return over ? EventSource.CLOSED : source ? source.readyState : EventSource.CONNECTING; } });
    document.addEventListener('visibilitychange', function () { if (document.hidden) pause(); else open(); });
    open();
  }
  htmx.createEventSource = function (url) { return new Follower(url); };

  // htmx searches the old element for every element with an id, which takes seconds for thousands
  // of rows. Rows are always sent whole, so they are put in place at once.
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
    if (all) {
      settled();
      retick(true);
      return;
    }
    // Only new elements are processed: there may be thousands of others.
    var came = rows.map(function (row) { return row.querySelector('.pick'); }).filter(Boolean);
    came.forEach(function (pick) { pick.checked = ticked.has(pick.value); });
    var number = document.querySelector('input[data-rows]'), ticks = document.getElementById('tick-shown');
    if (number) number.value = Number(number.value || document.querySelectorAll('tr[data-tool]').length - came.length) + came.length;
    if (ticks) ticks.checked = false;
  });

  // The daemon takes JSON only. A control that holds the value names its member in `data-member`; an empty value means "inherit".
  function member(key, value) {
    if (value === 'null') return null;
    if (key === 'enabled' || key === 'pinned') return value === 'true';
    return key === 'priority' ? Number(value) : value;
  }
  htmx.defineExtension('json-body', {
    onEvent: function (name, event) {
      if (name === 'htmx:configRequest' && event.detail.verb !== 'get') {
        event.detail.headers['Content-Type'] = archived(event.detail.elt) ? 'application/zip' : 'application/json';
      }
      return true;
    },
    encodeParameters: function (xhr, parameters, control) {
      if (archived(control)) return control.elements.archive.files[0];
      if (control.dataset.body) return control.dataset.body;
      var body = {};
      // Empty values are left out; "null" resets a setting.
      parameters.forEach(function (value, key) {
        if (key === 'tools') (body.tools = body.tools || []).push(value);
        else if (value !== '') body[key] = member(key, value);
      });
      var set = control.dataset.member;
      if (set) body[set] = control.type === 'checkbox' ? control.checked : control.value || null;
      return JSON.stringify(body);
    }
  });
})();
