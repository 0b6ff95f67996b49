// Pages opened from disk may not start a worker. Run its script in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => setTimeout(() => this.onmessage && this.onmessage({ data }))
      const script = inside.document.createElement("script")
      script.onload = () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      }
      script.onerror = event => this.onerror && this.onerror(event)
      script.src = new URL(url, location.href).href
      inside.document.body.appendChild(script)
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else setTimeout(() => this.frame.contentWindow && this.frame.contentWindow.onmessage({ data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
