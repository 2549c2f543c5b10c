"use strict";
(async () => {
  const unpacked = (id) => {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const library = document.createElement("script");
  library.textContent = await unpacked("plotly");
  document.head.append(library);
  const held = JSON.parse(await unpacked("figures"));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)");
  const choice = document.getElementById("stream");
  const zooms = ["zoomIn2d", "zoomOut2d", "resetScale2d"];
  const paper = { width: 680, shrink: 0.72 }; // of a printed page, in CSS pixels

  // A figure comes in the colours of the day; by night each is replaced by its counterpart.
  const coloured = (text, night) =>
    JSON.parse(text, (_, value) =>
      night && typeof value === "string" && Object.hasOwn(held.night, value)
        ? held.night[value]
        : value);

  // The vertical axis fits what is seen: in the range of a long history the band is a thread.
  const fit = (place, moved) => {
    if (!Object.keys(moved).some((name) => name.startsWith("xaxis"))) return;
    const axis = place._fullLayout.xaxis, labels = [], ends = [];
    const [from, to] = axis.range.map((end) => axis.r2l(end));
    for (const curve of place._fullData)
      curve.x.forEach((x, row) => {
        const seen = from <= axis.d2l(x) && axis.d2l(x) <= to && Number.isFinite(curve.y[row]);
        if (seen) (curve.legendgroup ? ends : labels).push(curve.y[row]);
      });
    ends.sort((one, other) => one - other);
    const few = Math.floor(ends.length / 100);
    const low = Math.min(...labels, ...ends.slice(few, few + 1));
    const high = Math.max(...labels, ...ends.slice(-few - 1).slice(0, 1));
    const air = 0.06 * (high - low);
    if (air > 0) Plotly.relayout(place, { "yaxis.range": [low - air, high + air] });
  };

  const draw = (night, printed) => {
    const view = held.views[choice ? choice.selectedIndex : 0];
    for (const place of document.querySelectorAll(".plot")) {
      const number = view.plots[place.id];
      const there = number !== undefined;
      place.closest("section").hidden = !there;
      if (!there) continue;
      const figure = coloured(held.figures[number], night);
      const caption = place.closest("figure").querySelector("figcaption");
      caption.textContent = figure.layout.meta.caption;
      figure.layout.uirevision = view.label;
      figure.layout.autosize = !printed;
      if (printed) {
        figure.layout.width = paper.width;
        figure.layout.height *= paper.shrink;
      }
      // On a touch screen a drag scrolls the page; the buttons zoom.
      if (touch.matches) figure.layout.dragmode = false;
      Plotly.react(place, figure.data, figure.layout, {
        displaylogo: false,
        responsive: true,
        displayModeBar: true,
        modeBarButtons: touch.matches ? [zooms] : [["toImage"], ["zoom2d", "pan2d"], zooms],
        toImageButtonOptions: { format: "png", scale: 2, filename: place.id },
      });
      if (place.id === "intervals" && !place.dataset.fits) {
        place.dataset.fits = "yes";
        place.on("plotly_relayout", (moved) => fit(place, moved));
      }
    }
  };

  const screen = () => draw(dark.matches, false);
  dark.addEventListener("change", screen);
  if (choice) choice.addEventListener("change", screen);
  window.addEventListener("beforeprint", () => draw(false, true));
  window.addEventListener("afterprint", screen);
  screen();
  document.documentElement.dataset.drawn = "yes";
})();
