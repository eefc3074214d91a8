/* A number, a term or a footnote explains itself where it stands: focus it, rest on it, or click it.
   The words are those of the note that its link leads to; without scripts the link is all there is.
   Everything hangs on the document, so pages swapped in by instant navigation need no second start. */
(() => {
  const LINKS = "a.v, a.term, a.footnote-ref"
  const MARGIN = 12
  let panel = null, owner = null, pinned = false, ignored = null, timer = 0

  const noteOf = link => document.getElementById(decodeURIComponent(link.hash.slice(1)))
  const linkAt = target => { // by its fragment: instant navigation makes every address whole
    const link = target.closest?.(LINKS)
    return link && /^#(from-|term-|fn:)/.test(link.hash) && noteOf(link) ? link : null
  }

  function fill(link) {
    const note = noteOf(link).cloneNode(true)
    note.querySelectorAll("[id]").forEach(one => one.removeAttribute("id"))
    note.querySelectorAll(".footnote-backref").forEach(one => one.remove())
    panel.replaceChildren(...note.childNodes)
    reach()
    panel.setAttribute("aria-label", `About ${link.textContent.trim()}`)
    place()
  }

  // Passing by with Tab one need not go through every panel: its links take part once it was asked for.
  const reach = () => panel.querySelectorAll("a").forEach(one => one.tabIndex = pinned ? 0 : -1)

  function place() {
    const at = owner.getClientRects()[0] ?? owner.getBoundingClientRect(), box = panel.getBoundingClientRect()
    const below = at.bottom + MARGIN / 2, above = at.top - box.height - MARGIN / 2
    const right = document.documentElement.clientWidth - box.width - MARGIN
    panel.style.left = `${Math.max(MARGIN, Math.min(at.left, right))}px`
    panel.style.top = `${Math.max(MARGIN, below + box.height > innerHeight && above > 0 ? above : Math.min(below, innerHeight - box.height - MARGIN))}px`
  }

  function show(link) {
    if (link === owner) return
    hide()
    panel = Object.assign(document.createElement("div"), { className: "panel", popover: "manual", tabIndex: -1 })
    panel.setAttribute("role", "dialog")
    owner = link
    owner.setAttribute("aria-expanded", "true")
    link.after(panel) // beside the link, so that the next Tab goes into it
    panel.showPopover()
    fill(link)
  }

  function hide() {
    clearTimeout(timer)
    if (!owner) return
    const [gone, link] = [panel, owner]
    panel = owner = null
    pinned = false
    link.removeAttribute("aria-expanded")
    gone.remove()
  }

  document.addEventListener("click", event => {
    const link = linkAt(event.target)
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    event.stopPropagation() // instant navigation would take it for a jump
    if (panel?.contains(link)) { fill(link); panel.focus(); return }
    if (link === owner && pinned) { hide(); return }
    show(link)
    pinned = true
    reach()
    panel.focus({ preventScroll: true })
  }, true)

  document.addEventListener("pointerdown", event => {
    if (owner && !panel.contains(event.target) && linkAt(event.target) !== owner) hide()
  })

  document.addEventListener("focusin", ({ target }) => {
    if (panel?.contains(target)) return
    const link = linkAt(target)
    if (link && link === ignored) { ignored = null; return }
    if (link !== owner) hide()
    if (link?.matches(":focus-visible")) show(link)
  })

  document.addEventListener("keydown", event => {
    if (event.key !== "Escape" || !owner) return
    ignored = owner
    const link = owner, inside = panel.contains(document.activeElement)
    hide()
    if (inside) link.focus()
    ignored = null
  })

  document.addEventListener("pointerover", event => {
    if (event.pointerType !== "mouse") return
    const link = linkAt(event.target)
    clearTimeout(timer)
    if (panel?.contains(event.target) || link === owner && owner) return
    if (link) timer = setTimeout(show, 300, link)
    else if (owner && !pinned && document.activeElement !== owner && !panel.contains(document.activeElement)) timer = setTimeout(hide, 300)
  })

  const move = () => owner && (owner.isConnected ? place() : hide())
  addEventListener("scroll", move, { passive: true })
  addEventListener("resize", move)
})()

/* What the style sheet leaves for later is laid out while nothing else is to do: the scroll bar, a picture of the whole
   page and a jump to its end then meet no gaps. Who comes for a part of the page has the rest of it at once. */
;(() => {
  const idle = window.requestIdleCallback ?? (work => setTimeout(work, 100))
  const lay = () => {
    const rest = [...document.querySelectorAll(".md-content__inner > :nth-child(n + 10)")]
    const some = () => {
      rest.splice(0, location.hash ? rest.length : 2).forEach(one => one.style.contentVisibility = "visible")
      if (rest.length) idle(some)
    }
    if (location.hash) some()
    else idle(some)
  }
  if (location.hash) lay()
  else addEventListener("load", lay)
  document.addEventListener("inklab:page", lay)
})()

/* Light or dark is the system's until somebody chooses; the choice is kept. */
;(() => {
  const root = document.documentElement, button = document.querySelector(".scheme")
  const system = matchMedia("(prefers-color-scheme: dark)")
  const other = () => (root.dataset.scheme || (system.matches ? "dark" : "light")) === "dark" ? "light" : "dark"
  const name = () => button.title = `Switch to ${other()}`
  button.addEventListener("click", () => {
    root.dataset.scheme = other()
    try { localStorage["inklab.scheme"] = root.dataset.scheme } catch {} // a reader may forbid it
    name()
  })
  system.addEventListener("change", name)
  name()
  button.hidden = false
})()

/* The theme's script searches and swaps pages; as a third of a first visit it waits until somebody searches, or points at
   a link where pages can be swapped (their addresses are known). A link followed before it is there is an ordinary one. */
;(() => {
  const swaps = document.querySelector("link[rel=canonical]") && location.protocol !== "file:"
  let wanted = false

  function want() {
    if (wanted) return
    wanted = true
    const later = document.getElementById("later").content.cloneNode(true)
    later.querySelector("script").addEventListener("load", () => {
      document.dispatchEvent(new Event("DOMContentLoaded")) // it starts on one, and the real one has been
      window.document$?.subscribe(() => document.dispatchEvent(new Event("inklab:page")))
    })
    document.body.append(later)
  }

  const inside = target => target.closest?.("a[href]")?.origin === location.origin
  document.addEventListener("focusin", ({ target }) => {
    if (target.name === "query" || swaps && inside(target)) want()
  })
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (swaps && pointerType === "mouse" && inside(target)) want()
  })
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return
    event.preventDefault()
    document.querySelector(".search__input").focus()
  })
  if (document.activeElement?.name === "query") want()
})()

/* Where it came for swapping, its search index and the worker that reads it wait all the same for somebody who searches. */
;(() => {
  const once = work => {
    if (document.activeElement?.name === "query") return work()
    const start = ({ target }) => {
      if (target.name !== "query") return
      document.removeEventListener("focusin", start)
      work()
    }
    document.addEventListener("focusin", start)
  }

  const { open, send } = XMLHttpRequest.prototype
  XMLHttpRequest.prototype.open = function (method, address, ...rest) {
    this.waits = String(address).endsWith("/search_index.json")
    return open.call(this, method, address, ...rest)
  }
  XMLHttpRequest.prototype.send = function (body) {
    if (this.waits) once(() => send.call(this, body))
    else send.call(this, body)
  }

  const Real = Worker
  window.Worker = function (address, ...rest) {
    if (!/\/workers\/search\.[^/]*js$/.test(address)) return new Real(address, ...rest)
    const late = new EventTarget(), said = []
    late.postMessage = message => said.push(message)
    once(() => {
      const worker = new Real(address, ...rest)
      worker.addEventListener("message", ({ data }) => late.dispatchEvent(new MessageEvent("message", { data })))
      late.postMessage = message => worker.postMessage(message)
      said.forEach(late.postMessage)
    })
    return late
  }
})()
