/* A number, a term or a footnote explains itself where it stands: focus it, rest on it, or click it.
   The words are those of the note that its link leads to; without scripts the link is all there is.
   Everything hangs on the document, so pages swapped in by instant navigation need no second start. */
(() => {
  const LINKS = 'a.v[href^="#from-"], a.term[href^="#term-"], a.footnote-ref'
  const MARGIN = 12
  let panel = null, owner = null, pinned = false, ignored = null, timer = 0

  const noteOf = link => document.getElementById(decodeURIComponent(link.hash.slice(1)))

  function fill(link) {
    const note = noteOf(link).cloneNode(true)
    note.querySelectorAll("[id]").forEach(one => one.removeAttribute("id"))
    note.querySelectorAll(".footnote-backref").forEach(one => one.remove())
    panel.replaceChildren(...note.childNodes)
    panel.setAttribute("aria-label", `About ${link.textContent.trim()}`)
    place()
  }

  function place() {
    const at = owner.getClientRects()[0], box = panel.getBoundingClientRect()
    const below = at.bottom + MARGIN / 2, above = at.top - box.height - MARGIN / 2
    const right = document.documentElement.clientWidth - box.width - MARGIN
    panel.style.left = `${Math.max(MARGIN, Math.min(at.left, right))}px`
    panel.style.top = `${Math.max(MARGIN, below + box.height > innerHeight && above > 0 ? above : Math.min(below, innerHeight - box.height - MARGIN))}px`
  }

  function show(link) {
    if (link === owner) return
    hide()
    if (!noteOf(link)) return
    panel = Object.assign(document.createElement("div"), { className: "panel", popover: "manual", tabIndex: -1 })
    panel.setAttribute("role", "dialog")
    owner = link
    owner.setAttribute("aria-expanded", "true")
    // Beside the link, so that the next Tab goes into it; an equation takes no such child.
    ;(link.closest("math") || link).after(panel)
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
    const link = event.target.closest(LINKS)
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || !noteOf(link)) return
    event.preventDefault()
    event.stopPropagation() // instant navigation would take it for a jump
    if (panel?.contains(link)) { fill(link); panel.focus(); return }
    if (link === owner && pinned) { hide(); return }
    show(link)
    pinned = true
    panel.focus({ preventScroll: true })
  }, true)

  document.addEventListener("pointerdown", event => {
    if (owner && !panel.contains(event.target) && event.target.closest(LINKS) !== owner) hide()
  })

  document.addEventListener("focusin", ({ target }) => {
    if (panel?.contains(target)) return
    const link = target.closest(LINKS)
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
    const link = event.target.closest(LINKS)
    clearTimeout(timer)
    if (panel?.contains(event.target) || link === owner && owner) return
    if (link) timer = setTimeout(show, 300, link)
    else if (owner && !pinned && document.activeElement !== owner && !panel.contains(document.activeElement)) timer = setTimeout(hide, 300)
  })

  const move = () => owner && (owner.isConnected ? place() : hide())
  addEventListener("scroll", move, { passive: true })
  addEventListener("resize", move)
})()
