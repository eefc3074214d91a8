"""A finished page made fit for where it will lie: its content security policy, links that work from a folder. Standard library only."""

from __future__ import annotations

import base64
import hashlib
import html
import re

_MUTE = re.compile(r"<pre\b(?![^>]*\btabindex)")
_HREF = re.compile(r'(<a\b[^>]*?\shref=")([^":#?]*)((?:\?[^"#]*)?(?:#[^"]*)?")')


def policy(page: str) -> str:
    """The content security policy of a page: its own files, its own inline scripts by hash, nothing else and no eval.

    Styles may stand inline: a chart and the theme set them on elements.
    """
    scripts = [part.partition(">") for part in page.split("<script")[1:]]
    inline = {rest.partition("</script>")[0] for attributes, _, rest in scripts if "src=" not in attributes and not re.search(r'type="?(?!module|text/javascript)\w', attributes)}
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'" for body in sorted(inline)]
    rules = {
        "default-src": "'none'", "script-src": " ".join(["'self'", *hashes]), "style-src": "'self' 'unsafe-inline'", "img-src": "'self' data: blob:",
        "font-src": "'self'", "connect-src": "'self'", "worker-src": "'self'", "manifest-src": "'self'", "base-uri": "'none'", "form-action": "'self'",
    }  # fmt: skip
    return "; ".join(f"{rule} {allowed}" for rule, allowed in rules.items())


def roomy(page: str) -> str:
    """A page whose paragraphs say how many characters they have: the style sheet leaves room for those that are laid out late (`--chars` there).

    >>> roomy("<p>One <b>two</b></p>")
    '<p style="--chars:7">One <b>two</b></p>'
    """
    first, *paragraphs = f"\n{page}".split("\n<p>")
    return "".join([first, *(f'\n<p style="--chars:{len(text(p.partition("</p>")[0]))}">{p}' for p in paragraphs)])[1:]


def guarded(page: str) -> str:
    """A page with its policy as the first thing after its encoding, so that it holds for all that follows; code that scrolls takes the focus."""
    page = _MUTE.sub('<pre tabindex="0"', page)  # what scrolls can be reached by keyboard
    tag = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(page))}">'
    return re.sub(r'(<meta charset="[^"]*">)', lambda m: f"{m[1]}\n      {tag}", page, count=1)


def without_comments(style: str) -> str:
    """A style sheet as it is published: its comments, a fifth of it, would be in every first visit.

    >>> without_comments("a { color: red; } /* a link */")
    'a { color: red; }'
    """
    return re.sub(r"\s*/\*.*?\*/", "", style, flags=re.S)


def for_folder(page: str) -> str:
    """A page whose links name index.html: opened from a folder, a link to a directory shows a list of files.

    >>> for_folder('<a href="../method/#noise">, <a href="."> and <a href="https://a.example/b/">')
    '<a href="../method/index.html#noise">, <a href="./index.html"> and <a href="https://a.example/b/">'
    """
    def named(link: re.Match) -> str:
        path = link[2]
        if path in (".", "..") or path.endswith(("/.", "/..")):
            path += "/"
        return f"{link[1]}{path}index.html{link[3]}" if path.endswith("/") else link[0]

    return _HREF.sub(named, page)


def lead(content: str) -> str:
    """A page's first words as plain text, for where it is shared: its lead, else its first paragraph; "" where it has none."""
    found = re.search(r'<p class="lead">(.*?)</p>', content, re.S) or re.search(r"<p>(.*?)</p>", content, re.S)
    return text(found[1]) if found else ""


def text(markup: str) -> str:
    """Markup as plain text on one line; narrow no-break spaces stay."""
    return re.sub(r"[ \t\r\n]+", " ", html.unescape(re.sub(r"<[^>]+>", "", markup))).strip()
