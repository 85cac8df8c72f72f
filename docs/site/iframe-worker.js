// Browsers start no worker for a page that is opened as a file. There the search runs in an invisible frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.early = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.inside.document.open();
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.onload = () => {
        const early = this.early;
        this.early = null;
        early.forEach((data) => this.postMessage(data));
      };
      this.inside.document.write(`<script src="${url}"><\/script>`);
      this.inside.document.close();
    }

    postMessage(data) {
      if (this.early) this.early.push(data);
      else this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
