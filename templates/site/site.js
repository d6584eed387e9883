// Search, filters, sorting and the comparison of any two cards. Without it every page still reads in full.
(function () {
  "use strict";
  var all = function (what, where) { return Array.prototype.slice.call((where || document).querySelectorAll(what)); };
  var found = window.ADVISOR = { entries: [], cards: {}, add: function (list) { found.entries = found.entries.concat(list); },
    card: function (slug, data) { found.cards[slug] = data; if (found.wanted) { found.wanted(); } } };
  var plain = function (text) { return text.toLowerCase().normalize("NFKD").replace(/[^a-z0-9.]+/g, " ").trim(); };
  var joined = function (text) { return plain(text).replace(/ /g, ""); };

  function el(tag, text, name) {
    var made = document.createElement(tag);
    if (text) { made.textContent = text; }
    if (name) { made.className = name; }
    return made;
  }

  function value(cell, numeric) {
    var given = cell.hasAttribute("data-v") ? cell.getAttribute("data-v") : cell.textContent.trim();
    if (cell.closest(".matrix") && !cell.hasAttribute("data-v") && cell.tagName === "TD") {
      return ["fits", "tight", "needs_offload", "too_big", "none"].indexOf(cell.className.split(" ")[0]);
    }
    if (!numeric) { return given.toLowerCase(); }
    return given === "" ? NaN : parseFloat(given);
  }

  function sort(table, place, numeric, up) {
    var body = table.tBodies[0], rows = Array.prototype.slice.call(body.rows);
    var keyed = rows.map(function (row, at) { return { row: row, at: at, key: value(row.cells[place], numeric) }; });
    keyed.sort(function (a, b) {
      var left = a.key, right = b.key;
      if (left !== left || right !== right) { return (left !== left) - (right !== right) || a.at - b.at; }
      var order = numeric ? left - right : left.localeCompare(right, "en", { numeric: true });
      return (up ? order : -order) || a.at - b.at;
    });
    keyed.forEach(function (item) { body.appendChild(item.row); });
  }

  function sortable(table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    heads.forEach(function (head, place) {
      var turned = head.classList.contains("turn"), corner = head.classList.contains("corner");
      var numeric = turned || head.getAttribute("data-sort") === "number";
      if (!turned && !corner && !head.hasAttribute("data-sort")) { return; }
      var button = el("button", turned ? "" : head.textContent);
      button.type = "button";
      if (turned) { button.setAttribute("aria-label", "Sort by " + head.textContent); } else { head.textContent = ""; }
      head.appendChild(button);
      button.addEventListener("click", function () {
        var up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sort(table, place, numeric, up);
      });
    });
  }

  function filtering(form) {
    var table = document.getElementById(form.getAttribute("data-for")), matrix = table.classList.contains("matrix");
    var count = form.querySelector(".count"), columns = Array.prototype.slice.call(table.tHead.rows[0].cells);
    function wanted(name) { return form.elements[name] ? form.elements[name].value : ""; }
    function apply() {
      var group = wanted("group"), size = parseFloat(wanted("size")), state = wanted("state"), family = wanted("family");
      var words = plain(wanted("text")).split(" ").filter(Boolean), shown = 0;
      var kept = columns.map(function (head) { return !family || !head.hasAttribute("data-family") || head.getAttribute("data-family") === family; });
      columns.forEach(function (head, at) { head.hidden = !kept[at]; });
      Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
        var data = row.dataset, text = words.length ? plain(row.cells[0].textContent) : "", flat = text.replace(/ /g, ""), any = !matrix || !state;
        var ok = (!group || data.group === group) && (!(size > 0) || parseFloat(data.size) >= size);
        ok = ok && (matrix || !state || data.state === state);
        ok = ok && words.every(function (word) { return text.indexOf(word) >= 0 || flat.indexOf(word) >= 0; });
        if (matrix) {
          Array.prototype.forEach.call(row.cells, function (cell, at) {
            cell.hidden = !kept[at];
            if (at < 2) { return; }
            var right = !state || cell.classList.contains(state);
            cell.classList.toggle("off", !right);
            any = any || (right && kept[at]);
          });
        }
        row.hidden = !(ok && any);
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = shown + " of " + table.tBodies[0].rows.length + " shown";
    }
    form.addEventListener("input", apply);
    form.addEventListener("change", apply);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("reset", function () { setTimeout(apply, 0); });
    apply();
  }

  function searching(form) {
    var input = form.querySelector("input"), list = form.querySelector("ul"), status = form.querySelector("[role=status]"), at = -1;
    var hits = [];
    function close() { list.hidden = true; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); at = -1; }
    function score(entry, words, flat) {
      var text = entry.plain, whole = entry.flat;
      if (!words.every(function (word) { return text.indexOf(word) >= 0; }) && whole.indexOf(flat) < 0) { return -1; }
      return (whole === flat ? 8 : 0) + (whole.indexOf(flat) >= 0 ? 4 : 0) + ((" " + text).indexOf(" " + words[0]) >= 0 ? 2 : 0) + 1 / (1 + text.length);
    }
    function show() {
      var words = plain(input.value).split(" ").filter(Boolean), flat = words.join("");
      if (!flat) { status.textContent = ""; close(); list.textContent = ""; return; }
      hits = found.entries.map(function (entry, order) {
        if (entry.flat === undefined) { entry.plain = plain(entry.name); entry.flat = joined(entry.name); }
        return { entry: entry, order: order, score: score(entry, words, flat) };
      }).filter(function (hit) { return hit.score >= 0; });
      hits.sort(function (a, b) { return b.score - a.score || a.order - b.order; });
      var total = hits.length;
      hits = hits.slice(0, 12);
      list.textContent = "";
      hits.forEach(function (hit, place) {
        var item = el("li"), link = el("a"), name = el("span", hit.entry.name);
        item.id = "found-" + place; item.setAttribute("role", "option"); item.setAttribute("aria-selected", "false");
        link.href = hit.entry.href; link.tabIndex = -1;
        link.appendChild(name); link.appendChild(el("small", hit.entry.note));
        item.appendChild(link); list.appendChild(item);
      });
      if (!hits.length) { list.appendChild(el("li", "Nothing found. Try fewer letters.")); }
      status.textContent = total + (total === 1 ? " result" : " results");
      list.hidden = false; input.setAttribute("aria-expanded", "true"); at = -1; input.removeAttribute("aria-activedescendant");
    }
    function mark(next) {
      if (!hits.length || list.hidden) { return; }
      at = (next + hits.length) % hits.length;
      all("[role=option]", list).forEach(function (item, place) { item.setAttribute("aria-selected", place === at ? "true" : "false"); });
      input.setAttribute("aria-activedescendant", "found-" + at);
      document.getElementById("found-" + at).scrollIntoView({ block: "nearest" });
    }
    input.addEventListener("input", show);
    input.addEventListener("focus", function () { if (input.value) { show(); } });
    input.addEventListener("keydown", function (event) {
      if (event.key === "ArrowDown") { event.preventDefault(); mark(at + 1); }
      if (event.key === "ArrowUp") { event.preventDefault(); mark(at < 0 ? -1 : at - 1); }
      if (event.key === "Escape") { close(); }
    });
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      if (hits.length && input.value) { location.href = hits[Math.max(at, 0)].entry.href; }
    });
    document.addEventListener("click", function (event) { if (!form.contains(event.target)) { close(); } });
  }

  function comparing(form) {
    var place = document.getElementById("compared"), one = form.elements.one, two = form.elements.two;
    if (two.options.length > 1) { two.selectedIndex = 1; }
    var asked = location.hash.slice(1).split("--");
    if (asked.length === 2) { one.value = asked[0]; two.value = asked[1]; }
    function load(slug) {
      if (found.cards[slug] || document.getElementById("data-" + slug)) { return; }
      var script = el("script");
      script.id = "data-" + slug; script.src = "data/card-" + slug + ".js";
      document.head.appendChild(script);
    }
    function table(heads, rows) {
      var box = el("div", "", "scroll"), made = el("table", "", "sortable"), head = made.createTHead().insertRow(), body = made.createTBody();
      heads.forEach(function (text, at) { var cell = el("th", text); cell.scope = "col"; if (at && heads.length > 3) { cell.setAttribute("data-sort", "number"); } head.appendChild(cell); });
      rows.forEach(function (cells) {
        var row = body.insertRow();
        cells.forEach(function (cell, at) {
          var made = at ? row.insertCell() : row.appendChild(el("th"));
          if (!at) { made.scope = "row"; }
          if (cell && cell.mark) {
            var link = el("a", cell.text, "mark " + cell.mark); link.href = cell.href;
            made.appendChild(link); made.appendChild(document.createTextNode(" " + cell.setup)); made.setAttribute("data-v", cell.rank);
          } else if (cell && cell.value !== undefined) { made.textContent = cell.text; made.className = "number"; made.setAttribute("data-v", cell.value); } else { made.textContent = cell; }
        });
      });
      box.tabIndex = 0; box.setAttribute("role", "region"); box.setAttribute("aria-label", heads[0]);
      box.appendChild(made);
      if (heads.length > 3) { sortable(made); }
      return box;
    }
    function cells(entry) {
      if (!entry) { return ["not asked for", ""]; }
      return [{ mark: entry[0], text: entry[1], setup: entry[2], href: entry[5], rank: entry[6] }, { text: entry[3], value: entry[4] }];
    }
    function draw() {
      var left = found.cards[one.value], right = found.cards[two.value];
      if (!left || !right) { load(one.value); load(two.value); return; }
      place.textContent = "";
      place.appendChild(el("h2", left.name + " or " + right.name));
      var names = {};
      left.facts.concat(right.facts).forEach(function (fact) { names[fact[0]] = 1; });
      var of = function (card, name) { var hit = card.facts.filter(function (fact) { return fact[0] === name; })[0]; return hit ? hit[1] : "not known"; };
      place.appendChild(table(["Figure", left.name, right.name], Object.keys(names).map(function (name) { return [name, of(left, name), of(right, name)]; })));
      var models = {};
      Object.keys(left.models).concat(Object.keys(right.models)).forEach(function (name) { models[name] = 1; });
      place.appendChild(el("h3", "Model by model"));
      place.appendChild(table(["Model", left.name, "Speed", right.name, "Speed"], Object.keys(models).map(function (name) {
        return [name].concat(cells(left.models[name]), cells(right.models[name]));
      })));
    }
    found.wanted = draw;
    form.addEventListener("change", function () { history.replaceState(null, "", "#" + one.value + "--" + two.value); draw(); });
    draw();
  }

  document.addEventListener("DOMContentLoaded", function () {
    all(".js").forEach(function (part) { part.hidden = false; });
    all("table.sortable").forEach(sortable);
    all("form.filters[data-for]").forEach(filtering);
    all("form.search").forEach(searching);
    all("#compare").forEach(comparing);
  });
}());
