// The search shows what each page says about a word. A server answers for the pages; on a
// disk, where a page may fetch nothing, their texts are in a script.
if (location.protocol === "file:") {
  const texts = new Promise((done) => {
    const script = document.createElement("script");
    script.src = document.documentElement.dataset.content_root + "_static/texts.js";
    script.onload = () => done(TEXTS);
    document.head.append(script);
  });
  window.fetch = async (address) => {
    const page = decodeURI(String(address)).replace(/^(\.\/)+/, "").replace(/\.html$/, "");
    return new Response((await texts)[page] ?? "");
  };
}
