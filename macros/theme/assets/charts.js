// A chart's tools. Explore draws the chart's own spec with Vega, which is loaded only then; Copy PNG draws what is seen.
(() => {
  const here = document.currentScript;
  const assets = new URL(".", here.src);
  const loaded = {};

  function load(address) {
    loaded[address] ??= new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = done;
      script.onerror = () => { delete loaded[address]; script.remove(); fail(new Error(address)); };
      document.head.append(script);
    });
    return loaded[address];
  }

  // Scripts, not fetch: a page opened from a folder may load the one and not the other.
  async function explore(figure, button) {
    const shown = figure.querySelector(":scope > .explored");
    if (shown) {
      shown.view.finalize();
      shown.remove();
    } else {
      const address = new URL(figure.dataset.chart, document.baseURI).href;
      await Promise.all([load(new URL(here.dataset.vega, assets).href), load(address)]);
      const spec = window.inklabCharts[address.split("/").pop()][figure.id];
      const phone = getComputedStyle(figure.querySelector("svg.wide")).display === "none";
      const place = document.createElement("div");
      place.className = "explored";
      const view = await vegaEmbed(place, phone ? spec.usermeta.narrow : spec, {
        mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true },
      });
      if (figure.querySelector(":scope > .explored")) return view.finalize(); // pressed twice while it loaded
      place.view = view;
      figure.prepend(place);
      if (spec.usermeta.zoom) place.title = "Drag to move, Ctrl and wheel to zoom, double-click to go back";
    }
    button.setAttribute("aria-pressed", String(!shown));
  }

  function colour(name) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  async function face() {
    try {
      const file = await (await fetch(new URL("fonts/inter.woff2", assets))).blob();
      const data = await new Promise((done) => {
        const reader = new FileReader();
        reader.onload = () => done(reader.result);
        reader.readAsDataURL(file);
      });
      return `<style>@font-face{font-family:Inter;src:url(${data})}</style>`;
    } catch {
      return ""; // opened from a folder: the next face in the stack
    }
  }

  function lines(pen, text, width) {
    return text.split(/\s+/).reduce((found, word) => {
      const longer = `${found.at(-1)} ${word}`.trim();
      if (pen.measureText(longer).width > width) found.push(word);
      else found[found.length - 1] = longer;
      return found;
    }, [""]);
  }

  async function picture(figure) {
    const seen = [...figure.querySelectorAll("svg")].find((svg) => svg.getClientRects().length);
    const { width, height } = seen.viewBox.baseVal;
    const copy = seen.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const text = new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[a-z]+)\)/g, (_, name) => colour(name))
      .replace(/>/, `>${await face()}`);
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();

    const scale = 2, edge = 16, step = 20;
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    const words = figure.querySelector("figcaption").cloneNode(true);
    words.querySelectorAll(".csv, .chart-tools").forEach((part) => part.remove());
    const font = "14px Inter, Arial, sans-serif";
    pen.font = font;
    const caption = lines(pen, `${words.textContent} ${document.title}`, width);
    canvas.width = scale * (width + 2 * edge);
    canvas.height = scale * (height + 3 * edge + step * caption.length);
    pen.scale(scale, scale);
    pen.fillStyle = colour("--paper");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, edge, edge, width, height);
    pen.fillStyle = colour("--muted");
    pen.font = font;
    caption.forEach((line, i) => pen.fillText(line, edge, height + 2 * edge + step * (i + 0.8)));
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  async function copy(figure, button) {
    const drawn = picture(figure);
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": drawn })]);
      button.textContent = "Copied";
    } catch { // no clipboard for this page: a file instead
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await drawn);
      link.download = `${figure.id}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      button.textContent = "Saved";
    }
    setTimeout(() => { button.textContent = "Copy PNG"; }, 3000);
  }

  function tool(words, act, figure) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    button.addEventListener("click", async () => {
      try {
        await act(figure, button);
      } catch {
        button.textContent = `${words}: could not be loaded`;
      }
    });
    return button;
  }

  function furnish() {
    for (const figure of document.querySelectorAll("figure.chart[data-chart]")) {
      if (figure.querySelector(".chart-tools")) continue;
      const tools = document.createElement("span");
      tools.className = "chart-tools";
      const first = tool("Explore", explore, figure);
      first.setAttribute("aria-pressed", "false");
      tools.append(first, tool("Copy PNG", copy, figure));
      figure.querySelector("figcaption").append(" ", tools);
    }
  }

  furnish();
  document.addEventListener("inklab:page", furnish);
})();
