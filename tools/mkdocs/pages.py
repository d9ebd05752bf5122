"""A hook of MkDocs that adds the pages outside of docs/ to the site, and adapts pages that are written for a code host.

On a code host, a page of docs/ links to ../README.md or to a source file. The site has README.md and CONTRIBUTING.md as
pages beside those of docs/. It has no source files, so their links become plain text.
"""
import logging
import os
import re
import urllib.parse

from mkdocs.structure.files import File

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
OUTSIDE = ("README.md", "CONTRIBUTING.md")  # pages of the site that are not in docs/
TRANSLATION = re.compile(r"\[([^\[\]]+)\]\(docs/(tour/[\w-]+)/README\.md\)")  # README's link to a tour
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ANCHOR = re.compile(r"""<[^>]* id=["']?([^"' >]+)""")
REFERENCE = re.compile(r"""<a [^>]*href=["']?([^"' >:#]*)#([^"' >]+)""")
# The folders of translations, with the theme's names of their languages.
LANGUAGES = {"tour/zh-Hans/": "zh", "tour/zh-Hant/": "zh-Hant", "tour/vi/": "vi"}
CHINESE = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
# Breaks of lines that would become a space inside of a Chinese sentence: between two signs, even if a link or emphasis
# ends or begins there, and between a mark that has its own space and other text. Group 1 is kept.
BREAK = re.compile(rf"(?<={CHINESE})(\]\([^)\s]+\)|”|\*+)?\n *(?=[[*“]*{CHINESE})"
                   r"|(?<=[，。：；、？！（）「」])\n *(?!\d+\. )(?=[\w(`“\"[])|(?<=[\u4e00-\u9fff])\n *(?=“)")
CELL = re.compile(r"<(t[dh])\b.*?</\1>", re.DOTALL)
CODE = re.compile(r"<code>([^\s<]+)</code>")  # without spaces
log = logging.getLogger("mkdocs.weft")
anchors = {}     # of the site's pages, by path
references = []  # a page of the repository, the path of the page to which it links, and the anchor there


def pages_of(folder, config):
    """Returns the pages in a folder of docs/, its README first; none if there is no such folder."""
    path = os.path.join(config["docs_dir"], folder)
    names = os.listdir(path) if os.path.isdir(path) else []
    pages = [folder + "/" + name for name in names if name.endswith(".md")]
    return sorted(pages, key=lambda page: (not page.endswith("/README.md"), page))


def on_config(config):
    """Replaces the entry "Tour: tour/*.md" of the navigation with the tour's files, and a section for each language."""
    tour = pages_of("tour", config)
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
        for language, folder in TRANSLATION.findall(readme.read()):
            pages = pages_of(folder, config)
            if pages:
                tour.append({language: pages})
    for section in config["nav"]:
        if section.get("Tour") == "tour/*.md":
            section["Tour"] = tour
    return config


def on_files(files, config):
    """Adds the pages outside of docs/, and the style sheet."""
    flat = config["use_directory_urls"]
    for name in OUTSIDE:
        files.append(File(name, ROOT, config["site_dir"], flat))
    files.append(File("style.css", os.path.join(ROOT, "tools/mkdocs"), config["site_dir"], flat))
    return files


def site_path(path):
    """Returns the place on the site of a file of the repository, or None if the site doesn't have the file."""
    if path in OUTSIDE:
        return path
    return path[len("docs/"):] if path.startswith("docs/") else None


def rewrite(match, page):
    """Returns a link of `page`, a file of the repository, as the site has it."""
    image, text, target = match.groups()
    address, _, anchor = target.partition("#")
    if not address or "://" in address or address.startswith("mailto:"):
        return match.group()
    path = os.path.normpath(os.path.join(os.path.dirname(page), address))
    there = site_path(path)
    if there is None:
        # A test has only the documentation; the whole repository has the file WORKSPACE, too.
        source = os.environ.get("WEFT_SOURCE", ROOT)
        if os.path.exists(os.path.join(source, "WORKSPACE")) and not os.path.exists(os.path.join(source, path)):
            log.warning("%s links to %s, which does not exist", page, path)
        return text
    relative = os.path.relpath(there, os.path.dirname(site_path(page)))
    return f"{image}[{text}]({relative}{'#' + anchor if anchor else ''})"


def language_of(page):
    """Returns the language of a page."""
    return next((name for folder, name in LANGUAGES.items() if page.file.src_path.startswith(folder)), "en")


def on_page_markdown(markdown, page, config, files):
    """Adapts the links of a page, joins lines of Chinese, and removes the words after the language of a block of code."""
    name = page.file.src_path
    path = name if name in OUTSIDE else "docs/" + name
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    for i, part in enumerate(parts):
        if part.startswith("```"):
            parts[i] = re.sub(r"\A```(\w+) .*", r"```\1", part)
        else:
            parts[i] = LINK.sub(lambda match: rewrite(match, path), BREAK.sub(r"\1", part))
    return "".join(parts)


def on_page_context(context, page, config, nav):
    """Sets the theme's language to that of the page, puts its section of the tour first, and drops foreign neighbours."""
    language = language_of(page)
    config["theme"]["language"] = language
    for side in ("previous_page", "next_page"):
        neighbour = getattr(page, side)
        if neighbour is not None and language_of(neighbour) != language:
            setattr(page, side, None)
    tour = next(item for item in nav.items if item.title == "Tour")
    # The language's own section comes first, then the English pages, and then the other sections.
    tour.children.sort(key=lambda child: (not child.is_section or language_of(child.children[0]) != language,
                                          child.is_section))
    return context


def break_code(match):
    """Returns code of a table: on one line if it is short, else with places for breaks after the parts of a path."""
    code = match.group(1)
    if len(code) <= 24:
        return f'<code class="whole">{code}</code>'
    return "<code>" + re.sub(r"(?<=\w[/:=])(?=\w)", "<wbr>", code) + "</code>"


def on_page_content(html, page, config, files):
    """Collects the anchors of a page, and its links to anchors. Says where code of tables may break."""
    anchors[page.file.dest_path] = set(ANCHOR.findall(html))
    for address, anchor in REFERENCE.findall(html):
        there = os.path.join(os.path.dirname(page.file.dest_path), address) if address else page.file.dest_path
        references.append((page.file.src_path, os.path.normpath(there), urllib.parse.unquote(anchor)))
    return CELL.sub(lambda cell: CODE.sub(break_code, cell.group()), html)


def on_post_build(config):
    """Reports links to anchors that their pages do not have."""
    for page, there, anchor in references:
        if there in anchors and anchor not in anchors[there]:
            log.warning("%s links to %s#%s, which does not exist", page, there, anchor)
