"""The page itself, one HTML file: the template, style and scripts of `assets/`, with the document and its functions.

The page loads nothing from elsewhere. Its content security policy allows no requests, and only this script and this
style, by their hashes. Text from users (names, comments, titles, device names) is escaped or is JSON, never markup.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from roofdsl import __version__
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.visible import visible
from roofdsl.page.content import Content
from roofdsl.predict.time_model import SAME

LARGEST_BYTES = 500_000
"""The size limit of a page, so that it can be sent by mail."""

NUMERIC = ("exact.js", "format.js", "model.js", "traffic.js", "crossings.js")
"""The scripts that need no HTML document, so that tests can run them alone."""

SCRIPTS = (*NUMERIC, "state.js", "draw.js", "roofline.js", "bars.js", "curve.js", "controls.js", "main.js")


@cache
def asset(name: str) -> str:
    """The text of a file of `assets/`."""
    return files("roofdsl.page").joinpath("assets", name).read_text(encoding="utf-8")


def expressions(functions: tuple[str, ...]) -> str:
    """The engine's expressions as the constant `FUNCTIONS`, and `NEAR`: how close to the largest term others must be to
    be named with it.
    """
    rows = ",\n".join(f"  {text}" for text in functions)
    near = f"const NEAR = {float(SAME)}; // terms that are so large, relatively, are named with the largest"
    about = "// The engine's expressions: exact ones as [numerator, denominator], times as [[name, seconds], ...]."
    return f"{about}\nconst FUNCTIONS = [\n{rows}\n];\n{near}"


def script(functions: tuple[str, ...]) -> str:
    """The page's script: the document, the engine's expressions and the files in order, in their own scope."""
    data = 'const DATA = JSON.parse(document.getElementById("data").textContent);'
    parts = ["(() => {", '"use strict";', data, expressions(functions), *(asset(name) for name in SCRIPTS)]
    return "\n".join([*parts, "})();\n"])


def to_page(content: Content) -> str:
    """The HTML. Raises CommandError for a page larger than LARGEST_BYTES."""
    document = _visible(content.document)
    kernels = document["kernels"]
    document["kernels"] = [{k: v for k, v in each.items() if k not in ("source", "article")} for each in kernels]
    style, program = asset("style.css"), script(content.functions)
    allowed = f"script-src '{_hash(program)}'; style-src '{_hash(style)}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    filled = {
        "policy": html.escape(policy),
        "title": html.escape(document["title"]),
        "style": style,
        "version": html.escape(__version__),
        "articles": "\n".join(_article(k, each) for k, each in enumerate(kernels)),
        "data": _json(document),
        "script": program,
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda m: filled[m[1]], asset("index.html"))
    if len(page.encode("utf-8")) > LARGEST_BYTES:
        raise CommandError(
            f"the page would have {len(page.encode('utf-8')) // 1000} kB, but the limit is {LARGEST_BYTES // 1000} kB",
            "use fewer kernels, machines or types",
        )
    return page


def _visible(value: Any) -> Any:
    """The document with all its texts made `visible`, since a page may show titles and names from untrusted files."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): _visible(each) for key, each in value.items()}
    return [_visible(each) for each in value] if isinstance(value, list | tuple) else value


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def _json(document: Any) -> str:
    """JSON that no HTML parser mistakes for markup."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _article(number: int, kernel: dict[str, Any]) -> str:
    constants = f"<p>with {html.escape(kernel['constants'])}</p>" if kernel["constants"] else ""
    return f"""<details data-kernel="{number}"{" open" if number == 0 else ""}>
<summary>{html.escape(kernel["title"])}: source and derivation</summary>
<pre class="source"><code>{kernel["source"]}</code></pre>{constants}
<p>As written, convention {html.escape(kernel["convention"])}, each element its own line:</p>
{kernel["article"]}
</details>"""
