"""Elements of HTML and SVG. A text becomes markup only here, and escaped: nothing else makes a Safe."""

from html import escape


class Safe(str):
    """Markup that can be put into a page as it is."""

    __slots__ = ()


def el(name: str, *children: str, **attributes: str | float | bool) -> Safe:
    """An element. A child that is no Safe is text, and escaped. `class_` is the attribute
    class, `aria_label` is aria-label.

    An attribute that is True has no value, one that is False is left out. Numbers have at most two decimals.
    """
    opened = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Safe(f"<{name}{opened}>{joined(*children)}</{name}>")


def joined(*children: str) -> Safe:
    """Children one after another, as `el` takes them."""
    return Safe("".join(child if isinstance(child, Safe) else escape(child) for child in children))


def _attribute(name: str, value: str | float | bool) -> str:
    if value is False:
        return ""
    if value is True:
        return f" {name}"
    text = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
    return f' {name}="{escape(text)}"'
